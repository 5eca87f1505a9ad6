// Keeps all it needs in registers.
__global__ void fits(const float* x, float* y) {
    y[threadIdx.x] = 2.0f * x[threadIdx.x];
}

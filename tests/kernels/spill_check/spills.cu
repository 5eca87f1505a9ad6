// 64 numbers alive at once where a thread may have 32 registers: some have to be put away in memory.
__global__ void __launch_bounds__(1024, 2) spills(const float* x, float* y) {
    float kept[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        kept[i] = x[i * 1024 + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        y[i * 1024 + threadIdx.x] = kept[i] * kept[63 - i];
    }
}

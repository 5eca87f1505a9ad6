#include "tests/benchmarks/peak_speed.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <ctime>

namespace millrace {

namespace {

constexpr int loops = 200'000;
constexpr int chains = 16;  // two units times four or five cycles of latency, and some to spare

#if defined(__x86_64__)

__attribute__((target("avx512f"))) float run_512() {
    __m512 sums[chains];
    for (int k = 0; k < chains; ++k) {
        sums[k] = _mm512_set1_ps(static_cast<float>(k));  // no two alike, lest they be computed once
    }
    const __m512 factor = _mm512_set1_ps(0.999f);
    for (int i = 0; i < loops; ++i) {
        for (__m512& sum : sums) {
            sum = _mm512_fmadd_ps(sum, factor, factor);
        }
    }
    __m512 total = sums[0];
    for (const __m512& sum : sums) {
        total = _mm512_add_ps(total, sum);
    }
    return _mm512_cvtss_f32(total);
}

__attribute__((target("avx2,fma"))) float run_256() {
    __m256 sums[chains];
    for (int k = 0; k < chains; ++k) {
        sums[k] = _mm256_set1_ps(static_cast<float>(k));  // no two alike, lest they be computed once
    }
    const __m256 factor = _mm256_set1_ps(0.999f);
    for (int i = 0; i < loops; ++i) {
        for (__m256& sum : sums) {
            sum = _mm256_fmadd_ps(sum, factor, factor);
        }
    }
    __m256 total = sums[0];
    for (const __m256& sum : sums) {
        total = _mm256_add_ps(total, sum);
    }
    return _mm256_cvtss_f32(total);
}

#endif

/// Vectors of four numbers, which every 64-bit machine has.
float run_128() {
    using Vector = float __attribute__((vector_size(16)));
    Vector sums[chains];
    for (int k = 0; k < chains; ++k) {
        sums[k] = Vector{} + static_cast<float>(k);  // no two alike, lest they be computed once
    }
    const Vector factor = Vector{} + 0.999f;
    for (int i = 0; i < loops; ++i) {
        for (Vector& sum : sums) {
            sum = sum * factor + factor;
        }
    }
    Vector total = sums[0];
    for (const Vector& sum : sums) {
        total += sum;
    }
    return total[0];
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double peak_flop_per_second() {
    float (*run)() = run_128;
    int lanes = 4;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        run = run_512;
        lanes = 16;
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        run = run_256;
        lanes = 8;
    }
#endif
    double best = 0.0;
    for (int i = 0; i < 20; ++i) {
        const double begin = cpu_seconds();
        volatile float result = run();
        static_cast<void>(result);
        best = std::max(best, 2.0 * lanes * chains * loops / (cpu_seconds() - begin));
    }
    return best;
}

}  // namespace millrace

// Sums of products of whole numbers up to 127, exact in any order.

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define STEP 16

__attribute__((target("avx2"))) static int product_avx2(const int8_t *held, const int16_t *point, long size) {
    __m256i sums = _mm256_setzero_si256();
    for (long at = 0; at < size; at += STEP) {
        __m256i of_held = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(held + at)));
        __m256i of_point = _mm256_loadu_si256((const __m256i *)(point + at));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(of_held, of_point));
    }
    int lanes[8], whole = 0;
    _mm256_storeu_si256((__m256i *)lanes, sums);
    for (int lane = 0; lane < 8; lane++) whole += lanes[lane];
    return whole;
}

#endif

static int whole_product(const int8_t *held, const int16_t *point, long size) {
    int whole = 0;
#if defined(__x86_64__) && defined(__GNUC__)
    if (size % STEP == 0 && __builtin_cpu_supports("avx2")) return product_avx2(held, point, size);
#endif
    for (long at = 0; at < size; at++) whole += held[at] * point[at];
    return whole;
}

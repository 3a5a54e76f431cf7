/* Products of the sentence encoder: activations of 8 bits times weights of 8 bits, summed exactly, then to floats.
 *
 * A sum is a whole number below 2^31, so that neither the processor nor the rows beside it change what comes out.
 */
#ifndef HTFI_ENCODER_PRODUCTS_H
#define HTFI_ENCODER_PRODUCTS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HTFI_X86 1
#include <immintrin.h>
#define TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,prefer-vector-width=512")))
#define TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16, GROUP = 64 }; /* outputs of a vector; outputs that are worked out together on VNNI */
enum { VNNI_ROWS = 6, AVX2_ROWS = 6 };

typedef struct {
    int num_outputs, num_inputs; /* multiples of GROUP */
    int zero;                    /* what zero is as an unsigned byte of the activations */
    int8_t *weights;             /* VNNI [N / 64, K / 4, 64, 4]; AVX2 [N / 16, K / 2, 16, 2]; plain [N, K] */
    float *scales;               /* [N]: step of the activations times scale of the weights */
    int32_t *start;              /* [N]: what zero adds, taken off before */
    const float *bias;           /* [N] */
} Product;

/* What becomes of the sums of a row: float times scale [times factor of the row], plus bias [plus the row of `added`]. */
typedef struct {
    float *out;           /* [M, N] */
    const float *factors; /* [M] or null */
    const float *added;   /* [M, N] or null; may be `out` */
} Result;

typedef void (*Multiply)(const Product *, const uint8_t *activations, int num_rows, Result to, int16_t *wide);

INLINE float finished(const Product *p, Result to, long row, int n, int32_t sum)
{
    float value = (float)sum * p->scales[n];
    if (to.factors) value = value * to.factors[row];
    value = value + p->bias[n];
    if (to.added) value = value + to.added[row * p->num_outputs + n];
    return value;
}

static void multiply_plain(const Product *p, const uint8_t *activations, int num_rows, Result to, int16_t *wide)
{
    (void)wide;
    const int depth = p->num_inputs;
    for (long row = 0; row < num_rows; row++) {
        const uint8_t *x = activations + row * depth;
        for (int n = 0; n < p->num_outputs; n++) {
            const int8_t *w = p->weights + (long)n * depth;
            int32_t sum = p->start[n];
            for (int k = 0; k < depth; k++) sum += (int32_t)x[k] * w[k];
            to.out[row * p->num_outputs + n] = finished(p, to, row, n, sum);
        }
    }
}

#ifdef HTFI_X86
TARGET_AVX2 INLINE void avx2_block(const Product *p, const int16_t *x, long row, const int m, int first, Result to)
{
    const int depth = p->num_inputs;
    const int8_t *w = p->weights + (long)first * depth;
    __m256i sums[AVX2_ROWS][2];
#pragma GCC unroll 6
    for (int t = 0; t < m; t++)
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) sums[t][g] = _mm256_loadu_si256((const __m256i *)(p->start + first + 8 * g));
    for (int k = 0; k < depth; k += 2, w += 2 * LANES) {
        const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
        const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16)));
#pragma GCC unroll 6
        for (int t = 0; t < m; t++) {
            int32_t pair;
            memcpy(&pair, x + (long)t * depth + k, sizeof pair);
            const __m256i a = _mm256_set1_epi32(pair);
            sums[t][0] = _mm256_add_epi32(sums[t][0], _mm256_madd_epi16(a, low));
            sums[t][1] = _mm256_add_epi32(sums[t][1], _mm256_madd_epi16(a, high));
        }
    }
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        const int n = first + 8 * g;
        const __m256 scales = _mm256_loadu_ps(p->scales + n), bias = _mm256_loadu_ps(p->bias + n);
#pragma GCC unroll 6
        for (int t = 0; t < m; t++) {
            __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[t][g]), scales);
            if (to.factors) value = _mm256_mul_ps(value, _mm256_set1_ps(to.factors[row + t]));
            value = _mm256_add_ps(value, bias);
            if (to.added) value = _mm256_add_ps(value, _mm256_loadu_ps(to.added + (row + t) * p->num_outputs + n));
            _mm256_storeu_ps(to.out + (row + t) * p->num_outputs + n, value);
        }
    }
}

TARGET_AVX2 static void multiply_avx2(const Product *p, const uint8_t *activations, int num_rows, Result to,
                                      int16_t *wide)
{
    const int depth = p->num_inputs;
    const int num_blocks = (num_rows + AVX2_ROWS - 1) / AVX2_ROWS;
    for (int block = 0, row = 0, m; block < num_blocks; block++, row += m) {
        m = (num_rows - row + num_blocks - block - 1) / (num_blocks - block);
        const uint8_t *x = activations + (long)row * depth;
        for (int i = 0; i < m * depth; i++) wide[i] = x[i];
        for (int first = 0; first < p->num_outputs; first += LANES) switch (m) {
            case 1: avx2_block(p, wide, row, 1, first, to); break;
            case 2: avx2_block(p, wide, row, 2, first, to); break;
            case 3: avx2_block(p, wide, row, 3, first, to); break;
            case 4: avx2_block(p, wide, row, 4, first, to); break;
            case 5: avx2_block(p, wide, row, 5, first, to); break;
            default: avx2_block(p, wide, row, 6, first, to);
            }
    }
}

/* sum += a * w, four bytes each. As an intrinsic it makes GCC 12 copy every sum twice. */
TARGET_VNNI INLINE void add_products(__m512i *sum, __m512i a, __m512i w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(a), "v"(w));
}

/* `m` rows from `row` on times 64 outputs; `m` is known when compiled. */
TARGET_VNNI INLINE void vnni_block(const Product *p, const uint8_t *activations, long row, const int m, int first,
                                   Result to, const int is_first)
{
    const int steps = p->num_inputs / 4;
    const int8_t *w = p->weights + (long)first * p->num_inputs;
    const int8_t *next = w + (long)GROUP * p->num_inputs;
    const int32_t *x = (const int32_t *)(activations + row * p->num_inputs);
    __m512i sums[VNNI_ROWS][4];
#pragma GCC unroll 6
    for (int t = 0; t < m; t++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) sums[t][g] = _mm512_loadu_si512(p->start + first + 16 * g);
    for (int k = 0; k < steps; k++, w += 4 * GROUP) {
        __m512i weights[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) weights[g] = _mm512_load_si512(w + 64 * g);
        if (is_first) {
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) _mm_prefetch((const char *)next + 64 * g, _MM_HINT_T1);
            next += 4 * GROUP;
        }
#pragma GCC unroll 6
        for (int t = 0; t < m; t++) {
            const __m512i a = _mm512_set1_epi32(x[(long)t * steps + k]);
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) add_products(&sums[t][g], a, weights[g]);
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const int n = first + 16 * g;
        const __m512 scales = _mm512_loadu_ps(p->scales + n), bias = _mm512_loadu_ps(p->bias + n);
#pragma GCC unroll 6
        for (int t = 0; t < m; t++) {
            __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[t][g]), scales);
            if (to.factors) value = _mm512_mul_ps(value, _mm512_set1_ps(to.factors[row + t]));
            value = _mm512_add_ps(value, bias);
            if (to.added) value = _mm512_add_ps(value, _mm512_loadu_ps(to.added + (row + t) * p->num_outputs + n));
            _mm512_storeu_ps(to.out + (row + t) * p->num_outputs + n, value);
        }
    }
}

TARGET_VNNI INLINE void vnni_rows(const Product *p, const uint8_t *x, long row, int m, int first, Result to,
                                  const int is_first)
{
    switch (m) {
    case 1: vnni_block(p, x, row, 1, first, to, is_first); break;
    case 2: vnni_block(p, x, row, 2, first, to, is_first); break;
    case 3: vnni_block(p, x, row, 3, first, to, is_first); break;
    case 4: vnni_block(p, x, row, 4, first, to, is_first); break;
    case 5: vnni_block(p, x, row, 5, first, to, is_first); break;
    default: vnni_block(p, x, row, 6, first, to, is_first);
    }
}

/* Rows in blocks of as equal a size as can be: a block of one or two would wait for its own sums. */
TARGET_VNNI static void multiply_vnni(const Product *p, const uint8_t *activations, int num_rows, Result to,
                                      int16_t *wide)
{
    (void)wide;
    const int num_blocks = (num_rows + VNNI_ROWS - 1) / VNNI_ROWS;
    for (int first = 0; first < p->num_outputs; first += GROUP) {
        int row = 0;
        for (int block = 0; block < num_blocks; block++) {
            const int m = (num_rows - row + num_blocks - block - 1) / (num_blocks - block);
            if (block == 0)
                vnni_rows(p, activations, row, m, first, to, 1);
            else
                vnni_rows(p, activations, row, m, first, to, 0);
            row += m;
        }
    }
}
#endif

/* Lay out weights [K, N] as the multiplication of `level` reads them. Returns whether there was memory. */
static int lay_out(Product *p, const int8_t *weights, float step, const float *scales, int level)
{
    const long n = p->num_outputs, depth = p->num_inputs;
    p->weights = aligned_alloc(64, (size_t)(n * depth));
    p->scales = malloc((size_t)n * sizeof(float));
    p->start = malloc((size_t)n * sizeof(int32_t));
    if (!p->weights || !p->scales || !p->start) return 0;
    for (long i = 0; i < n; i++) p->scales[i] = step * scales[i], p->start[i] = 0;
    for (long k = 0; k < depth; k++)
        for (long i = 0; i < n; i++) {
            const int8_t weight = weights[k * n + i];
            long place = i * depth + k;
            if (level == 2) place = ((i / GROUP * (depth / 4) + k / 4) * GROUP + i % GROUP) * 4 + k % 4;
            if (level == 1) place = ((i / LANES * (depth / 2) + k / 2) * LANES + i % LANES) * 2 + k % 2;
            p->weights[place] = weight;
            p->start[i] -= p->zero * weight;
        }
    return 1;
}

#endif

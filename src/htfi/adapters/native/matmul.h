/* Linear layers of int8 weights on activations of 15 bits; the network's passes multiply through here alone.
 *
 * A product is a sum of whole numbers, so that it does not depend on the order of its terms, nor on the tokens beside.
 */
#ifndef HTFI_MATMUL_H
#define HTFI_MATMUL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HTFI_X86 1
#include <immintrin.h>
#define TARGET_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma")))
#define TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { TOP = 127 * 128 + 63 };  /* the largest activation: 128 high + low, both within a signed byte */
enum { LANES = 64, CHUNK = 1024 };  /* outputs packed together; terms whose sum fits 32 bits in the plain layout */

typedef struct {
    int num_outputs, num_inputs, width; /* width: inputs, rounded up to 32 */
    int8_t *rows;                       /* plain [outputs, width]; packed [outputs / 64, width / 4, 64, 4] plus 128 */
    const float *scales, *bias;         /* [outputs]; bias may be null */
} Linear;

typedef struct {
    int16_t *whole;    /* [tokens, width]; for the packed layout its bytes are high [width] then low [width] */
    float *scales;     /* [tokens] */
    int32_t *sums;     /* [tokens, 2]: of high and low */
} Rounded;

typedef void (*Multiply)(const Linear *, const Rounded *, int num_tokens, float *out, long stride);

INLINE int rounded_up(int value, int grain) { return (value + grain - 1) / grain * grain; }

/* Activations of one token as whole numbers within TOP. */
INLINE void round_token(const float *restrict x, const Linear *to, Rounded *rounded, int token, int is_packed)
{
    const int n = to->num_inputs, width = to->width;
    float largest = 0.0f;
    for (int i = 0; i < n; i++) largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    const float unit = largest > 0.0f ? TOP / largest : 0.0f;
    rounded->scales[token] = largest / TOP;
    int16_t *restrict whole = rounded->whole + (long)token * width;
    if (!is_packed) {
        for (int i = 0; i < n; i++) whole[i] = (int16_t)(int32_t)(x[i] * unit + copysignf(0.5f, x[i]));
        for (int i = n; i < width; i++) whole[i] = 0;
        return;
    }
    int8_t *restrict high = (int8_t *)whole, *restrict low = high + width;
    int32_t high_sum = 0, low_sum = 0;
    for (int i = 0; i < n; i++) {
        int32_t q = (int32_t)(x[i] * unit + copysignf(0.5f, x[i]));
        int32_t top = (q + 64) >> 7, rest = q - top * 128;
        high[i] = (int8_t)top;
        low[i] = (int8_t)rest;
        high_sum += top;
        low_sum += rest;
    }
    for (int i = n; i < width; i++) high[i] = low[i] = 0;
    rounded->sums[2 * token] = high_sum;
    rounded->sums[2 * token + 1] = low_sum;
}

INLINE void multiply_plain(const Linear *linear, const Rounded *rounded, int num_tokens, float *out, long stride)
{
    const int width = linear->width;
    for (int n = 0; n < linear->num_outputs; n++) {
        const int8_t *row = linear->rows + (long)n * width;
        const float bias = linear->bias ? linear->bias[n] : 0.0f;
        for (int t = 0; t < num_tokens; t++) {
            const int16_t *whole = rounded->whole + (long)t * width;
            float total = 0.0f;
            for (int begin = 0; begin < width; begin += CHUNK) {
                const int end = begin + CHUNK < width ? begin + CHUNK : width;
                int32_t sum = 0;
                for (int k = begin; k < end; k++) sum += (int32_t)(int16_t)row[k] * whole[k];
                total += (float)sum;
            }
            out[t * stride + n] = total * (linear->scales[n] * rounded->scales[t]) + bias;
        }
    }
}

static void multiply_default(const Linear *l, const Rounded *x, int m, float *out, long stride)
{
    multiply_plain(l, x, m, out, stride);
}

#ifdef HTFI_X86
TARGET_AVX2 static void multiply_avx2(const Linear *l, const Rounded *x, int m, float *out, long stride)
{
    multiply_plain(l, x, m, out, stride);
}

/* `m` tokens from `token` on times `r` groups of 16 outputs; both known when compiled. Weights are unsigned, 128 more
 * than they are, which the sums of the activations take back. */
TARGET_VNNI INLINE void vnni_block(const Linear *l, const Rounded *x, int token, const int m, int first, const int r,
                                   float *out, long stride)
{
    const int width = l->width, steps = width / 4;
    const uint8_t *weights = (const uint8_t *)l->rows + (long)(first / LANES) * LANES * width + first % LANES * 4;
    __m512i high[4][4], low[4][4];
#pragma GCC unroll 4
    for (int t = 0; t < m; t++)
#pragma GCC unroll 4
        for (int g = 0; g < r; g++) high[t][g] = low[t][g] = _mm512_setzero_si512();
    const int32_t *top = (const int32_t *)(x->whole + (long)token * width);
    for (int k = 0; k < steps; k++, weights += LANES * 4) {
        __m512i w[4];
#pragma GCC unroll 4
        for (int g = 0; g < r; g++) w[g] = _mm512_load_si512(weights + 64 * g);
#pragma GCC unroll 4
        for (int t = 0; t < m; t++) {
            const __m512i a = _mm512_set1_epi32(top[(long)t * 2 * steps + k]);
            const __m512i b = _mm512_set1_epi32(top[(long)t * 2 * steps + steps + k]);
#pragma GCC unroll 4
            for (int g = 0; g < r; g++) {
                high[t][g] = _mm512_dpbusd_epi32(high[t][g], w[g], a);
                low[t][g] = _mm512_dpbusd_epi32(low[t][g], w[g], b);
            }
        }
    }
#pragma GCC unroll 4
    for (int g = 0; g < r; g++) {
        const int begin = first + 16 * g, left = l->num_outputs - begin;
        if (left <= 0) break;
        const __mmask16 here = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
        const __m512 scale = _mm512_maskz_loadu_ps(here, l->scales + begin);
        const __m512 bias = l->bias ? _mm512_maskz_loadu_ps(here, l->bias + begin) : _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int t = 0; t < m; t++) {
            const int32_t *sums = x->sums + 2 * (token + t);
            __m512 upper = _mm512_cvtepi32_ps(_mm512_sub_epi32(high[t][g], _mm512_set1_epi32(128 * sums[0])));
            __m512 lower = _mm512_cvtepi32_ps(_mm512_sub_epi32(low[t][g], _mm512_set1_epi32(128 * sums[1])));
            __m512 total = _mm512_fmadd_ps(upper, _mm512_set1_ps(128.0f), lower);
            __m512 unit = _mm512_mul_ps(scale, _mm512_set1_ps(x->scales[token + t]));
            _mm512_mask_storeu_ps(out + (token + t) * stride + begin, here, _mm512_fmadd_ps(total, unit, bias));
        }
    }
}

TARGET_VNNI static void multiply_vnni(const Linear *l, const Rounded *x, int m, float *out, long stride)
{
    for (int first = 0; first < l->num_outputs; first += LANES) {
        int t = 0;
        for (; t + 4 <= m; t += 4) {
            vnni_block(l, x, t, 4, first, 2, out, stride);
            vnni_block(l, x, t, 4, first + 32, 2, out, stride);
        }
        if (m - t == 3) vnni_block(l, x, t, 3, first, 2, out, stride), vnni_block(l, x, t, 3, first + 32, 2, out, stride);
        if (m - t == 2) vnni_block(l, x, t, 2, first, 4, out, stride);
        if (m - t == 1) vnni_block(l, x, t, 1, first, 4, out, stride);
    }
}
#endif

/* Lay out int8 weights [outputs, inputs] as the multiplication reads them. Returns whether there was memory. */
static int lay_out(Linear *linear, const int8_t *weights, int is_packed)
{
    const int n = linear->num_outputs, k = linear->num_inputs;
    linear->width = rounded_up(k, 32);
    const int outputs = rounded_up(n, LANES);
    const size_t size = (size_t)outputs * linear->width;
    linear->rows = aligned_alloc(64, size);
    if (!linear->rows) return 0;
    memset(linear->rows, is_packed ? 128 : 0, size);
    for (int row = 0; row < n; row++)
        for (int i = 0; i < k; i++) {
            const int8_t weight = weights[(long)row * k + i];
            if (is_packed) {
                long place = ((long)(row / LANES) * (linear->width / 4) + i / 4) * LANES + row % LANES;
                ((uint8_t *)linear->rows)[place * 4 + i % 4] = (uint8_t)(weight + 128);
            } else
                linear->rows[(long)row * linear->width + i] = weight;
        }
    return 1;
}

#endif

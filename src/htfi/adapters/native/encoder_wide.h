/* What encoder_floats.h does, for AVX-512: the same operations in the same order, 16 numbers or 4 rows at once.
 *
 * The compiler makes vectors of most loops by itself; here are those of which it does not, or whose sums wait for each
 * other. */
#ifndef HTFI_ENCODER_WIDE_H
#define HTFI_ENCODER_WIDE_H

#include "encoder_floats.h"

#ifdef HTFI_X86
/* As `exponential`. */
TARGET_VNNI INLINE __m512 exponential_wide(__m512 x)
{
    const __m512 shifted = _mm512_set1_ps(12582912.0f);
    x = _mm512_max_ps(x, _mm512_set1_ps(-103.9720840454f));
    const __m512 power = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504088896341f), shifted), shifted);
    x = _mm512_fmadd_ps(power, _mm512_set1_ps(-6.93145752e-1f), x);
    x = _mm512_fmadd_ps(power, _mm512_set1_ps(-1.42860677e-6f), x);
    __m512 sum = _mm512_fmadd_ps(_mm512_set1_ps(0x1.694000p-10f), x, _mm512_set1_ps(0x1.125edcp-7f));
    sum = _mm512_fmadd_ps(sum, x, _mm512_set1_ps(0x1.555b5ap-5f));
    sum = _mm512_fmadd_ps(sum, x, _mm512_set1_ps(0x1.555450p-3f));
    sum = _mm512_fmadd_ps(sum, x, _mm512_set1_ps(0x1.fffff6p-2f));
    sum = _mm512_fmadd_ps(sum, x, _mm512_set1_ps(1.0f));
    sum = _mm512_fmadd_ps(sum, x, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(sum, power);
}

/* As `softmax`. */
TARGET_VNNI INLINE void softmax_wide(float *scores, int n)
{
    const int whole = (n - 1) / 16 * 16;
    const __mmask16 last = (__mmask16)(0xffffu >> (16 - (n - whole)));
    __m512 best = _mm512_mask_loadu_ps(_mm512_set1_ps(scores[0]), last, scores + whole);
    for (int i = 0; i < whole; i += 16) best = _mm512_max_ps(best, _mm512_loadu_ps(scores + i));
    const __m512 most = _mm512_set1_ps(_mm512_reduce_max_ps(best));
    __m512 sums = _mm512_setzero_ps();
    for (int i = 0; i < whole; i += 16) {
        const __m512 share = exponential_wide(_mm512_sub_ps(_mm512_loadu_ps(scores + i), most));
        _mm512_storeu_ps(scores + i, share);
        sums = _mm512_add_ps(sums, share);
    }
    const __m512 share = exponential_wide(_mm512_sub_ps(_mm512_loadu_ps(scores + whole), most));
    _mm512_storeu_ps(scores + whole, share);
    sums = _mm512_mask_add_ps(sums, last, sums, share);
    const __m256 eight = _mm256_add_ps(_mm512_extractf32x8_ps(sums, 0), _mm512_extractf32x8_ps(sums, 1));
    const __m256 pairs = _mm256_hadd_ps(eight, eight), fours = _mm256_hadd_ps(pairs, pairs);
    const float total = _mm256_cvtss_f32(fours) + _mm_cvtss_f32(_mm256_extractf128_ps(fours, 1));
    const __m512 unit = _mm512_set1_ps(1.0f / total);
    for (int i = 0; i < n; i += 16) _mm512_storeu_ps(scores + i, _mm512_mul_ps(_mm512_loadu_ps(scores + i), unit));
}

/* As `hyperbolic_tangent`. */
TARGET_VNNI INLINE __m512 tangent_wide(__m512 x)
{
    x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-9.0f)), _mm512_set1_ps(9.0f));
    const __m512 square = _mm512_mul_ps(x, x);
    __m512 above = _mm512_fmadd_ps(_mm512_set1_ps(-2.76076847742355e-16f), square, _mm512_set1_ps(2.00018790482477e-13f));
    above = _mm512_fmadd_ps(above, square, _mm512_set1_ps(-8.60467152213735e-11f));
    above = _mm512_fmadd_ps(above, square, _mm512_set1_ps(5.12229709037114e-08f));
    above = _mm512_fmadd_ps(above, square, _mm512_set1_ps(1.48572235717979e-05f));
    above = _mm512_fmadd_ps(above, square, _mm512_set1_ps(6.37261928875436e-04f));
    above = _mm512_mul_ps(_mm512_fmadd_ps(above, square, _mm512_set1_ps(4.89352455891786e-03f)), x);
    __m512 below = _mm512_fmadd_ps(_mm512_set1_ps(1.19825839466702e-06f), square, _mm512_set1_ps(1.18534705686654e-04f));
    below = _mm512_fmadd_ps(below, square, _mm512_set1_ps(2.26843463243900e-03f));
    below = _mm512_fmadd_ps(below, square, _mm512_set1_ps(4.89352518554385e-03f));
    return _mm512_div_ps(above, below);
}

/* As `gelu`. */
TARGET_VNNI INLINE float gelu_wide(float *x, int n, float least)
{
    __m512 largest = _mm512_set1_ps(least);
    for (int i = 0; i < n; i += 16) {
        const __m512 value = _mm512_loadu_ps(x + i);
        const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.035677408136300125f), value), value);
        const __m512 turned = _mm512_mul_ps(value, _mm512_add_ps(cube, _mm512_set1_ps(0.7978845608028654f)));
        const __m512 share = _mm512_add_ps(tangent_wide(turned), _mm512_set1_ps(1.0f));
        const __m512 result = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.5f), value), share);
        _mm512_storeu_ps(x + i, result);
        largest = _mm512_max_ps(largest, result);
    }
    return _mm512_reduce_max_ps(largest);
}

/* `as_byte` of 64 numbers whose quotients `values` are right but for their last bits; whether no quotient lies so near
 * the middle between two whole numbers that these bits could count. Not-a-number and the infinite count as near. */
TARGET_VNNI INLINE int bytes_of_quotients(const __m512 *values, int zero, uint8_t *out)
{
    const __m512 near_half = _mm512_set1_ps(0.49975f); /* quotients up to 256 are off by less than 1e-4 */
    __mmask16 near = 0;
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const __m512i whole = _mm512_cvtps_epi32(values[g]);
        const __m512 off = _mm512_abs_ps(_mm512_sub_ps(values[g], _mm512_cvtepi32_ps(whole)));
        near |= _mm512_cmp_ps_mask(off, near_half, _CMP_NLT_UQ);
        const __m512i byte = _mm512_max_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(zero)), _mm512_setzero_si512());
        _mm_storeu_si128((__m128i *)(out + 16 * g), _mm512_cvtusepi32_epi8(byte));
    }
    return near == 0;
}

/* What x is multiplied by where it is to be divided by `divisor`; not-a-number where that would not be exact enough. */
INLINE float inverse_of(float divisor) { return divisor > 1e-30f && divisor < 1e30f ? 1.0f / divisor : NAN; }

/* As `bytes_in_range`. */
TARGET_VNNI INLINE void bytes_in_range_wide(const float *x, const float *inverse, float step, uint8_t *out, int n)
{
    const __m512 factor = _mm512_set1_ps(inverse_of(step));
    for (int i = 0; i < n; i += 64) {
        __m512 values[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const int at = i + 16 * g;
            values[g] = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + at), _mm512_loadu_ps(inverse + at)), factor);
        }
        if (!bytes_of_quotients(values, 128, out + i)) bytes_in_range(x + i, inverse + i, step, out + i, 64);
    }
}

/* As `bytes_of`. */
TARGET_VNNI INLINE void bytes_of_wide(const float *x, float step, uint8_t *out, int n)
{
    const __m512 factor = _mm512_set1_ps(inverse_of(step));
    for (int i = 0; i < n; i += 64) {
        __m512 values[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) values[g] = _mm512_mul_ps(_mm512_loadu_ps(x + i + 16 * g), factor);
        if (!bytes_of_quotients(values, 128, out + i)) bytes_of(x + i, step, out + i, 64);
    }
}

/* As `bytes_of_shares`. */
TARGET_VNNI INLINE void bytes_of_shares_wide(const float *x, float largest, float step, uint8_t *out, int n)
{
    const __m512 factor = _mm512_set1_ps(inverse_of(largest * step));
    for (int i = 0; i < n; i += 64) {
        __m512 values[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) values[g] = _mm512_mul_ps(_mm512_loadu_ps(x + i + 16 * g), factor);
        if (!bytes_of_quotients(values, 16, out + i)) bytes_of_shares(x + i, largest, step, out + i, 64);
    }
}

TARGET_VNNI INLINE __m512 two_eights(const float *low, const float *high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1);
}

TARGET_VNNI INLINE __m512d two_fours(const float *low, const float *high)
{
    return _mm512_cvtps_pd(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1));
}

/* As `norm_rows_plain`, four rows at once. */
TARGET_VNNI INLINE void norm_rows_wide(const float *from, int num_rows, const float *gain, const float *shift, float *to,
                                       int n, float eps)
{
    for (int row = 0; row < num_rows; row += 4) {
        const float *x[4];
        float means[4], units[4], squares[32];
        double parts[16];
        for (int r = 0; r < 4; r++) x[r] = from + (long)(row + r < num_rows ? row + r : num_rows - 1) * n;
        __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
        for (int i = 0; i < n; i += 4) {
            sums[0] = _mm512_add_pd(sums[0], two_fours(x[0] + i, x[1] + i));
            sums[1] = _mm512_add_pd(sums[1], two_fours(x[2] + i, x[3] + i));
        }
        _mm512_storeu_pd(parts, sums[0]);
        _mm512_storeu_pd(parts + 8, sums[1]);
        for (int r = 0; r < 4; r++) {
            const double *part = parts + 4 * r;
            means[r] = (float)(((part[0] + part[2]) + (part[1] + part[3])) / (double)n);
        }
        __m512 middles[2], totals[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int r = 0; r < 2; r++)
            middles[r] = _mm512_insertf32x8(_mm512_set1_ps(means[2 * r]), _mm256_set1_ps(means[2 * r + 1]), 1);
        for (int i = 0; i < n; i += 8)
            for (int r = 0; r < 2; r++) {
                const __m512 off = _mm512_sub_ps(two_eights(x[2 * r] + i, x[2 * r + 1] + i), middles[r]);
                totals[r] = _mm512_fmadd_ps(off, off, totals[r]);
            }
        _mm512_storeu_ps(squares, totals[0]);
        _mm512_storeu_ps(squares + 16, totals[1]);
        for (int r = 0; r < 4; r++) {
            const float *s = squares + 8 * r;
            const float sum = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
            units[r] = 1.0f / sqrtf(sum / (float)n + eps);
        }
        for (int r = 0; r < 4 && row + r < num_rows; r++) {
            float *out = to + (long)(row + r) * n;
            const __m512 mean = _mm512_set1_ps(means[r]), unit = _mm512_set1_ps(units[r]);
            for (int i = 0; i < n; i += 16) {
                const __m512 normed = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x[r] + i), mean), unit);
                _mm512_storeu_ps(out + i, _mm512_fmadd_ps(normed, _mm512_loadu_ps(gain + i), _mm512_loadu_ps(shift + i)));
            }
        }
    }
}
#endif

#endif

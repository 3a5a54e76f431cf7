/* What the sentence encoder does in floats: norms, GELU, softmax, and the way to bytes, each in one fixed order.
 *
 * The order and the roundings are those of onnxruntime's kernels for AVX-512, so that both engines give the same bits.
 * A fused multiply-add is one where it is written as fmaf, and nowhere else.
 */
#ifndef HTFI_ENCODER_FLOATS_H
#define HTFI_ENCODER_FLOATS_H

#include "encoder_products.h"

/* (x - mean) / deviation * gain + shift of rows [num_rows, n]; the mean is summed in doubles, four at once, squares in
 * floats, eight. */
INLINE void norm_rows_plain(const float *restrict from, int num_rows, const float *restrict gain,
                            const float *restrict shift, float *restrict to, int n, float eps)
{
    for (long row = 0; row < num_rows; row++) {
        const float *restrict x = from + row * n;
        float *restrict out = to + row * n;
        double parts[4] = {0.0, 0.0, 0.0, 0.0};
        for (int i = 0; i < n; i += 4)
            for (int j = 0; j < 4; j++) parts[j] += (double)x[i + j];
        const float mean = (float)(((parts[0] + parts[2]) + (parts[1] + parts[3])) / (double)n);
        float squares[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (int i = 0; i < n; i += 8)
            for (int j = 0; j < 8; j++) {
                const float off = x[i + j] - mean;
                squares[j] = fmaf(off, off, squares[j]);
            }
        float four[4];
        for (int j = 0; j < 4; j++) four[j] = squares[j] + squares[j + 4];
        const float sum = (four[0] + four[2]) + (four[1] + four[3]);
        const float unit = 1.0f / sqrtf(sum / (float)n + eps);
        for (int i = 0; i < n; i++) out[i] = fmaf((x[i] - mean) * unit, gain[i], shift[i]);
    }
}

/* x / step to the nearest whole number, ties to even, as an unsigned byte whose zero is `zero`. */
INLINE uint8_t as_byte(float x, float step, float zero)
{
    float whole = x / step;
    whole = whole < -zero ? -zero : whole;
    whole = whole > 255.0f - zero ? 255.0f - zero : whole;
    return (uint8_t)((int32_t)rintf(whole) + (int32_t)zero);
}

/* Bytes of x times `inverse`, around 128. */
INLINE void bytes_in_range(const float *restrict x, const float *restrict inverse, float step, uint8_t *restrict out,
                           int n)
{
    for (int i = 0; i < n; i++) out[i] = as_byte(x[i] * inverse[i], step, 128.0f);
}

INLINE void bytes_of(const float *restrict x, float step, uint8_t *restrict out, int n)
{
    for (int i = 0; i < n; i++) out[i] = as_byte(x[i], step, 128.0f);
}

/* tanh as a quotient of polynomials, the coefficients Eigen's. */
INLINE float hyperbolic_tangent(float x)
{
    x = x < -9.0f ? -9.0f : x;
    x = x > 9.0f ? 9.0f : x;
    const float square = x * x;
    float above = fmaf(-2.76076847742355e-16f, square, 2.00018790482477e-13f);
    above = fmaf(above, square, -8.60467152213735e-11f);
    above = fmaf(above, square, 5.12229709037114e-08f);
    above = fmaf(above, square, 1.48572235717979e-05f);
    above = fmaf(above, square, 6.37261928875436e-04f);
    above = fmaf(above, square, 4.89352455891786e-03f) * x;
    float below = fmaf(1.19825839466702e-06f, square, 1.18534705686654e-04f);
    below = fmaf(below, square, 2.26843463243900e-03f);
    below = fmaf(below, square, 4.89352518554385e-03f);
    return above / below;
}

/* GELU by tanh in place; the largest value, `least` at the least. */
INLINE float gelu(float *restrict x, int n, float least)
{
    for (int i = 0; i < n; i++) {
        const float turned = x[i] * (0.035677408136300125f * x[i] * x[i] + 0.7978845608028654f);
        x[i] = 0.5f * x[i] * (hyperbolic_tangent(turned) + 1.0f);
    }
    float largest[LANES];
    for (int j = 0; j < LANES; j++) largest[j] = least;
    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) largest[j] = x[i + j] > largest[j] ? x[i + j] : largest[j];
    for (int j = 1; j < LANES; j++) largest[0] = largest[j] > largest[0] ? largest[j] : largest[0];
    return largest[0];
}

/* Bytes of x as shares of `largest`, of which 239 levels lie above zero and 16 below. */
INLINE void bytes_of_shares(const float *restrict x, float largest, float step, uint8_t *restrict out, int n)
{
    for (int i = 0; i < n; i++) out[i] = as_byte(x[i] / largest, step, 16.0f);
}

/* exp for x from -104 to 0. */
INLINE float exponential(float x)
{
    x = x < -103.9720840454f ? -103.9720840454f : x;
    const float shifted = 12582912.0f; /* 1.5 * 2^23: to the nearest whole number */
    const float power = fmaf(x, 1.44269504088896341f, shifted) - shifted;
    x = fmaf(power, -6.93145752e-1f, x);
    x = fmaf(power, -1.42860677e-6f, x);
    float sum = fmaf(0x1.694000p-10f, x, 0x1.125edcp-7f);
    sum = fmaf(sum, x, 0x1.555b5ap-5f);
    sum = fmaf(sum, x, 0x1.555450p-3f);
    sum = fmaf(sum, x, 0x1.fffff6p-2f);
    sum = fmaf(sum, x, 1.0f);
    sum = fmaf(sum, x, 1.0f);
    const int32_t whole = (int32_t)power, half = whole / 2; /* 2^whole itself may be too small for a float */
    union { int32_t bits; float number; } one = {(half + 127) << 23}, other = {(whole - half + 127) << 23};
    return sum * one.number * other.number;
}

/* Scores of `n` keys, padded to LANES, to shares, in place: lanes are summed first, then across. */
INLINE void softmax(float *restrict scores, int n)
{
    float best = scores[0];
    for (int i = 1; i < n; i++) best = scores[i] > best ? scores[i] : best;
    float sums[LANES];
    for (int j = 0; j < LANES; j++) sums[j] = 0.0f;
    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float share = exponential(scores[i + j] - best);
            scores[i + j] = i + j < n ? share : 0.0f;
            sums[j] += scores[i + j];
        }
    float eight[8], two[2];
    for (int j = 0; j < 8; j++) eight[j] = sums[j] + sums[j + 8];
    for (int j = 0; j < 2; j++) two[j] = (eight[4 * j] + eight[4 * j + 1]) + (eight[4 * j + 2] + eight[4 * j + 3]);
    const float unit = 1.0f / (two[0] + two[1]);
    for (int i = 0; i < n; i++) scores[i] *= unit;
}

#endif

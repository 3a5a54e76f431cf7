/* log and exp with the bits of the module portable_math: its operations, in its order, and no fused multiply-add. */
#ifndef HTFI_PORTABLE_MATH_H
#define HTFI_PORTABLE_MATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { NUM_ATANH_TERMS = 11, NUM_EXP_TERMS = 15 };
static const double atanh_terms[NUM_ATANH_TERMS] = {
    1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0,
};
static const double exp_terms[NUM_EXP_TERMS] = { /* 1/14! to 1/0!, each the one before in the sum divided by its number */
    0x1.93974a8c07c9ep-37, 0x1.6124613a86d0ap-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26,
    0x1.27e4fb7789f5dp-22, 0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-13,
    0x1.6c16c16c16c17p-10, 0x1.1111111111111p-7, 0x1.5555555555555p-5, 0x1.5555555555555p-3, 0x1.0000000000000p-1,
    0x1.0000000000000p+0, 0x1.0000000000000p+0,
};
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

static inline double exact_log(double x)
{
    int exponent = 0;
    double mantissa = frexp(x, &exponent);
    if (mantissa < 0.7071067811865476) mantissa = 2.0 * mantissa, exponent -= 1;
    const double power = (double)exponent, f = (mantissa - 1.0) / (mantissa + 1.0), square = f * f;
    double series = atanh_terms[0];
    for (int k = 1; k < NUM_ATANH_TERMS; k++) series = series * square + atanh_terms[k];
    return power * LN2_HIGH + (2.0 * f * series + power * LN2_LOW);
}

static inline double exact_exp(double x)
{
    if (isnan(x)) return x;
    x = x < -700.0 ? -700.0 : x;
    x = x > 700.0 ? 700.0 : x;
    const double power = rint(x * 1.4426950408889634);
    const double rest = (x - power * LN2_HIGH) - power * LN2_LOW;
    double series = exp_terms[0];
    for (int k = 1; k < NUM_EXP_TERMS; k++) series = series * rest + exp_terms[k];
    const uint64_t bits = (uint64_t)((int64_t)power + 1023) << 52; /* 2^power, never subnormal: |power| <= 1010 */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return series * scale;
}

/* For modules that are compiled without -fassociative-math alone. */
#define ROUNDING 0x1.8p52 /* adding it leaves a whole number: its last bit is worth 1 */

/* rint(x) of |x| < 2^51, but that -0.0 is 0.0; inline, and several at once. */
static inline double nearest(double x)
{
    return (x + ROUNDING) - ROUNDING;
}

/* exact_exp of num numbers in place: the same operations, side by side instead of one after the other. */
static inline void exact_exps(double *x, long num)
{
    for (long i = 0; i < num; i++) {
        const double given = x[i];
        double at = given < -700.0 ? -700.0 : given;
        at = at > 700.0 ? 700.0 : at;
        const double shifted = at * 1.4426950408889634 + ROUNDING, power = shifted - ROUNDING;
        const double rest = (at - power * LN2_HIGH) - power * LN2_LOW;
        double series = exp_terms[0];
        for (int k = 1; k < NUM_EXP_TERMS; k++) series = series * rest + exp_terms[k];
        uint64_t bits; /* the whole number stands in the last ones */
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;
        double scale;
        memcpy(&scale, &bits, sizeof scale);
        x[i] = given != given ? given : series * scale;
    }
}

#endif

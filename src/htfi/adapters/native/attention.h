/* Attention of new tokens over a row's past and each other; a forward pass calls it layer by layer. */
#ifndef HTFI_ATTENTION_H
#define HTFI_ATTENTION_H

#include "model.h"

typedef void (*Score)(const float *q, const float *keys, const float *mask, float *out, int n, int d, float scale);

/* Scores of one query with `n` keys. */
INLINE void score_plain(const float *restrict q, const float *restrict keys, const float *restrict mask,
                        float *restrict out, int n, const int d, float scale)
{
    for (int s = 0; s < n; s++) {
        float sum = 0.0f;
        for (int i = 0; i < d; i++) sum += q[i] * keys[(long)s * d + i];
        out[s] = sum * scale + mask[s];
    }
}

#ifdef HTFI_X86
/* The sums of 16 vectors' elements, as one vector. */
TARGET_VNNI INLINE __m512 sums_of(const __m512 *a)
{
    __m512 pairs[8], fours[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        pairs[i] = _mm512_add_ps(_mm512_unpacklo_ps(a[2 * i], a[2 * i + 1]), _mm512_unpackhi_ps(a[2 * i], a[2 * i + 1]));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d one = _mm512_castps_pd(pairs[2 * i]), other = _mm512_castps_pd(pairs[2 * i + 1]);
        fours[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(one, other)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(one, other)));
    }
    const __m512 left = _mm512_add_ps(_mm512_shuffle_f32x4(fours[0], fours[1], 0x44),
                                      _mm512_shuffle_f32x4(fours[0], fours[1], 0xee));
    const __m512 right = _mm512_add_ps(_mm512_shuffle_f32x4(fours[2], fours[3], 0x44),
                                       _mm512_shuffle_f32x4(fours[2], fours[3], 0xee));
    return _mm512_add_ps(_mm512_shuffle_f32x4(left, right, 0x88), _mm512_shuffle_f32x4(left, right, 0xdd));
}

/* As score_plain, 16 keys at once; `d` is a multiple of 16. */
TARGET_VNNI INLINE void score_wide(const float *q, const float *keys, const float *mask, float *out, int n, const int d,
                                   float scale)
{
    for (int s = 0; s < n; s += 16) {
        const int left = n - s;
        const __mmask16 here = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
        __m512 sums[16];
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) {
            const float *key = keys + (long)(j < left ? s + j : s) * d;
            sums[j] = _mm512_mul_ps(_mm512_loadu_ps(q), _mm512_loadu_ps(key));
            for (int i = 16; i < d; i += 16)
                sums[j] = _mm512_fmadd_ps(_mm512_loadu_ps(q + i), _mm512_loadu_ps(key + i), sums[j]);
        }
        const __m512 masked = _mm512_maskz_loadu_ps(here, mask + s);
        _mm512_mask_storeu_ps(out + s, here, _mm512_fmadd_ps(sums_of(sums), _mm512_set1_ps(scale), masked));
    }
}
#endif

/* Head sizes known to the compiler are several times faster. */
#define BY_HEAD_SIZE(call, d) \
    switch (d) { \
    case 16: call(16); break; \
    case 32: call(32); break; \
    case 64: call(64); break; \
    default: call(d); \
    }

INLINE void score_any(const float *q, const float *keys, const float *mask, float *out, int n, int d, float scale)
{
#define CALL(size) score_plain(q, keys, mask, out, n, size, scale)
    BY_HEAD_SIZE(CALL, d)
#undef CALL
}

static void score_default(const float *q, const float *keys, const float *mask, float *out, int n, int d, float scale)
{
    score_any(q, keys, mask, out, n, d, scale);
}

#ifdef HTFI_X86
TARGET_AVX2 static void score_avx2(const float *q, const float *keys, const float *mask, float *out, int n, int d,
                                   float scale)
{
    score_any(q, keys, mask, out, n, d, scale);
}

TARGET_VNNI static void score_vnni(const float *q, const float *keys, const float *mask, float *out, int n, int d,
                                   float scale)
{
    if (d % 16) {
        score_plain(q, keys, mask, out, n, d, scale);
        return;
    }
#define CALL(size) score_wide(q, keys, mask, out, n, size, scale)
    BY_HEAD_SIZE(CALL, d)
#undef CALL
}
#endif

/* Scores to shares, in place, not yet divided by their sum, which is returned. */
INLINE float shares_of(float *restrict scores, int n)
{
    float best = scores[0], total = 0.0f;
    for (int s = 1; s < n; s++) best = scores[s] > best ? scores[s] : best;
    for (int s = 0; s < n; s++) scores[s] = exponential(scores[s] - best); /* hidden: 1e-38, lost in any sum */
    for (int s = 0; s < n; s++) total += scores[s];
    return total;
}

INLINE void mix(const float *restrict shares, const float *restrict values, float *restrict out, int n, const int d)
{
    enum { WIDE = 32 };
    for (int begin = 0; begin < d; begin += WIDE) {
        const int size = d - begin < WIDE ? d - begin : WIDE;
        float sum[WIDE], more[WIDE];
        for (int i = 0; i < size; i++) sum[i] = more[i] = 0.0f;
        int s = 0;
        for (; s + 1 < n; s += 2)
            for (int i = 0; i < size; i++) {
                sum[i] += shares[s] * values[(long)s * d + begin + i];
                more[i] += shares[s + 1] * values[(long)(s + 1) * d + begin + i];
            }
        for (; s < n; s++)
            for (int i = 0; i < size; i++) sum[i] += shares[s] * values[(long)s * d + begin + i];
        for (int i = 0; i < size; i++) out[begin + i] += sum[i] + more[i];
    }
}

/* One row's attention. wide [T, N + 2G, D] holds the turned queries; mixed [T, N, D] is what comes out. */
INLINE void attend(const Model *m, const Pass *pass, int layer, int row, const float *wide, float *mixed,
                   float *restrict scores, Score score, const int d)
{
    const int heads = m->num_heads, groups = m->num_kv_heads, t_new = pass->num_new, past = pass->num_past;
    const int all = heads + 2 * groups, shared = heads / groups;
    const float scale = 1.0f / sqrtf((float)d);
    const long place = layer * pass->layer_step + row * pass->row_step;
    const long new_place = layer * pass->new_layer_step + row * pass->new_row_step;
    for (int t = 0; t < t_new; t++) {
        const float *mask = pass->mask + (pass->is_chain ? 0 : ((long)row * t_new + t) * (past + t_new));
        int seen = past, reach = pass->is_chain ? t + 1 : t_new; /* what lies beyond is hidden */
        while (seen > 0 && mask[seen - 1] < UNSEEN) seen--;
        while (reach > 1 && mask[past + reach - 1] < UNSEEN) reach--;
        for (int h = 0; h < heads; h++) {
            const int g = h / shared;
            const float *q = wide + ((long)t * all + h) * d;
            const float *keys = pass->keys + place + g * pass->head_step;
            const float *values = pass->values + place + g * pass->head_step;
            const float *new_keys = pass->new_keys + new_place + g * pass->new_head_step;
            const float *new_values = pass->new_values + new_place + g * pass->new_head_step;
            score(q, keys, mask, scores, seen, d, scale);
            score(q, new_keys, mask + past, scores + seen, reach, d, scale);
            const float total = shares_of(scores, seen + reach);
            float *out = mixed + ((long)t * heads + h) * d;
            for (int i = 0; i < d; i++) out[i] = 0.0f;
            mix(scores, values, out, seen, d);
            mix(scores + seen, new_values, out, reach, d);
            for (int i = 0; i < d; i++) out[i] /= total;
        }
    }
}

#endif

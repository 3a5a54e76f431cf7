/* Attention of the tokens of one text over each other, head by head; a pass of the sentence encoder calls it.
 *
 * A score is summed over a head's numbers one after the other, a mix over the keys one after the other, each by fused
 * multiply-adds: the order of onnxruntime's products of floats.
 */
#ifndef HTFI_ENCODER_ATTENTION_H
#define HTFI_ENCODER_ATTENTION_H

#include "encoder_wide.h"

enum { QUERIES = 8, WIDE_QUERIES = 6 }; /* worked on together at the most: over up to 32 keys, over more */

/* One head of one text, for its queries from `first` to before `end`. qkv: its first query [T, stride]; keys and values
 * lie `hidden` and 2 `hidden` further. `turned` [D, padded T] and `scores` [QUERIES, padded T] are scratch; mixed
 * [end - first, hidden] gets what comes out. */
typedef struct {
    const float *qkv;
    float *mixed, *turned, *scores;
    int num_tokens, padded, head_dim, hidden, first, end;
    float scale;
} Head;

typedef void (*Attend)(const Head *);

/* Keys to head->turned: a row for each number. */
INLINE void turn_plain(const Head *head)
{
    const int n = head->num_tokens, padded = head->padded, d = head->head_dim;
    const long stride = 3L * head->hidden;
    const float *keys = head->qkv + head->hidden;
    float *restrict turned = head->turned;
    for (int s = 0; s < padded; s++)
        for (int i = 0; i < d; i++) turned[(long)i * padded + s] = s < n ? keys[s * stride + i] : 0.0f;
}

INLINE void attend_plain(const Head *head)
{
    const int n = head->num_tokens, padded = head->padded, d = head->head_dim;
    const long stride = 3L * head->hidden;
    const float *values = head->qkv + 2L * head->hidden, *turned = head->turned;
    float *restrict scores = head->scores;
    turn_plain(head);
    for (int t = head->first; t < head->end; t++) {
        const float *query = head->qkv + t * stride;
        for (int s = 0; s < padded; s++) scores[s] = 0.0f;
        for (int i = 0; i < d; i++)
            for (int s = 0; s < padded; s++) scores[s] = fmaf(query[i], turned[(long)i * padded + s], scores[s]);
        for (int s = 0; s < padded; s++) scores[s] *= head->scale;
        softmax(scores, n);
        float *restrict out = head->mixed + (long)(t - head->first) * head->hidden;
        for (int i = 0; i < d; i++) out[i] = 0.0f;
        for (int s = 0; s < n; s++)
            for (int i = 0; i < d; i++) out[i] = fmaf(scores[s], values[s * stride + i], out[i]);
    }
}

static void attend_default(const Head *head) { attend_plain(head); }

#ifdef HTFI_X86
/* As `attend_plain`, `m` queries from `token` on at once, whose sums stay in registers. */
TARGET_AVX2 INLINE void attend_queries_avx2(const Head *head, int token, const int m)
{
    const int padded = head->padded, d = head->head_dim;
    const long stride = 3L * head->hidden;
    const float *queries = head->qkv + token * stride, *values = head->qkv + 2L * head->hidden;
    const __m256 scale = _mm256_set1_ps(head->scale);
    for (int first = 0; first < padded; first += 16) {
        __m256 sums[WIDE_QUERIES][2];
#pragma GCC unroll 6
        for (int q = 0; q < m; q++) sums[q][0] = sums[q][1] = _mm256_setzero_ps();
        const float *keys = head->turned + first;
        for (int i = 0; i < d; i++, keys += padded) {
            const __m256 low = _mm256_loadu_ps(keys), high = _mm256_loadu_ps(keys + 8);
#pragma GCC unroll 6
            for (int q = 0; q < m; q++) {
                const __m256 number = _mm256_set1_ps(queries[q * stride + i]);
                sums[q][0] = _mm256_fmadd_ps(number, low, sums[q][0]);
                sums[q][1] = _mm256_fmadd_ps(number, high, sums[q][1]);
            }
        }
#pragma GCC unroll 6
        for (int q = 0; q < m; q++) {
            _mm256_storeu_ps(head->scores + q * padded + first, _mm256_mul_ps(sums[q][0], scale));
            _mm256_storeu_ps(head->scores + q * padded + first + 8, _mm256_mul_ps(sums[q][1], scale));
        }
    }
    for (int q = 0; q < m; q++) softmax(head->scores + q * padded, head->num_tokens);
    for (int first = 0; first < d; first += 16) {
        __m256 sums[WIDE_QUERIES][2];
#pragma GCC unroll 6
        for (int q = 0; q < m; q++) sums[q][0] = sums[q][1] = _mm256_setzero_ps();
        const float *value = values + first;
        for (int s = 0; s < head->num_tokens; s++, value += stride) {
            const __m256 low = _mm256_loadu_ps(value), high = _mm256_loadu_ps(value + 8);
#pragma GCC unroll 6
            for (int q = 0; q < m; q++) {
                const __m256 share = _mm256_set1_ps(head->scores[q * padded + s]);
                sums[q][0] = _mm256_fmadd_ps(share, low, sums[q][0]);
                sums[q][1] = _mm256_fmadd_ps(share, high, sums[q][1]);
            }
        }
#pragma GCC unroll 6
        for (int q = 0; q < m; q++) {
            float *out = head->mixed + (long)(token - head->first + q) * head->hidden + first;
            _mm256_storeu_ps(out, sums[q][0]);
            _mm256_storeu_ps(out + 8, sums[q][1]);
        }
    }
}

TARGET_AVX2 static void attend_avx2(const Head *head)
{
    turn_plain(head);
    const int num = head->end - head->first, num_blocks = (num + WIDE_QUERIES - 1) / WIDE_QUERIES;
    for (int block = 0, token = head->first, m; block < num_blocks; block++, token += m) {
        m = (head->end - token + num_blocks - block - 1) / (num_blocks - block);
        switch (m) {
        case 1: attend_queries_avx2(head, token, 1); break;
        case 2: attend_queries_avx2(head, token, 2); break;
        case 3: attend_queries_avx2(head, token, 3); break;
        case 4: attend_queries_avx2(head, token, 4); break;
        case 5: attend_queries_avx2(head, token, 5); break;
        default: attend_queries_avx2(head, token, 6);
        }
    }
}

/* 16 rows of 16 numbers, `stride` apart, to 16 rows `wide` apart: columns become rows. */
TARGET_VNNI INLINE void turn_block(const float *from, long stride, int num_rows, float *to, long wide)
{
    __m512 rows[16], pairs[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) rows[i] = i < num_rows ? _mm512_loadu_ps(from + i * stride) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m512d one = _mm512_castps_pd(pairs[4 * i + j]), other = _mm512_castps_pd(pairs[4 * i + 2 + j]);
            rows[4 * i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(one, other));
            rows[4 * i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(one, other));
        }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { /* rows[4 i + c] holds column c of each quarter, of rows 4 i to 4 i + 3 */
        const __m512 a = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0x88);
        const __m512 e = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0xdd);
        const __m512 f = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0xdd);
        _mm512_storeu_ps(to + c * wide, _mm512_shuffle_f32x4(a, b, 0x88));
        _mm512_storeu_ps(to + (8 + c) * wide, _mm512_shuffle_f32x4(a, b, 0xdd));
        _mm512_storeu_ps(to + (4 + c) * wide, _mm512_shuffle_f32x4(e, f, 0x88));
        _mm512_storeu_ps(to + (12 + c) * wide, _mm512_shuffle_f32x4(e, f, 0xdd));
    }
}

/* Scores of `m` queries with `b` times 16 keys from `first` on. */
TARGET_VNNI INLINE void score_block(const Head *head, const float *queries, int first, const int m, const int b)
{
    const long stride = 3L * head->hidden;
    __m512 sums[QUERIES][4];
#pragma GCC unroll 8
    for (int q = 0; q < m; q++)
#pragma GCC unroll 4
        for (int g = 0; g < b; g++) sums[q][g] = _mm512_setzero_ps();
    const float *keys = head->turned + first;
    for (int i = 0; i < head->head_dim; i++, keys += head->padded) {
        __m512 key[4];
#pragma GCC unroll 4
        for (int g = 0; g < b; g++) key[g] = _mm512_loadu_ps(keys + 16 * g);
#pragma GCC unroll 8
        for (int q = 0; q < m; q++) {
            const __m512 number = _mm512_set1_ps(queries[q * stride + i]);
#pragma GCC unroll 4
            for (int g = 0; g < b; g++) sums[q][g] = _mm512_fmadd_ps(number, key[g], sums[q][g]);
        }
    }
    const __m512 scale = _mm512_set1_ps(head->scale);
#pragma GCC unroll 8
    for (int q = 0; q < m; q++)
#pragma GCC unroll 4
        for (int g = 0; g < b; g++)
            _mm512_storeu_ps(head->scores + q * head->padded + first + 16 * g, _mm512_mul_ps(sums[q][g], scale));
}

/* What `m` rows of shares make of `w` times 16 numbers of the values from `first` on. */
TARGET_VNNI INLINE void mix_block(const Head *head, int token, int first, const int m, const int w)
{
    const long stride = 3L * head->hidden;
    const float *values = head->qkv + 2L * head->hidden + first, *shares = head->scores;
    __m512 sums[QUERIES][2];
#pragma GCC unroll 8
    for (int q = 0; q < m; q++)
#pragma GCC unroll 2
        for (int g = 0; g < w; g++) sums[q][g] = _mm512_setzero_ps();
    for (int s = 0; s < head->num_tokens; s++, values += stride) {
        __m512 value[2];
#pragma GCC unroll 2
        for (int g = 0; g < w; g++) value[g] = _mm512_loadu_ps(values + 16 * g);
#pragma GCC unroll 8
        for (int q = 0; q < m; q++) {
            const __m512 share = _mm512_set1_ps(shares[q * head->padded + s]);
#pragma GCC unroll 2
            for (int g = 0; g < w; g++) sums[q][g] = _mm512_fmadd_ps(share, value[g], sums[q][g]);
        }
    }
#pragma GCC unroll 8
    for (int q = 0; q < m; q++)
#pragma GCC unroll 2
        for (int g = 0; g < w; g++)
            _mm512_storeu_ps(head->mixed + (long)(token - head->first + q) * head->hidden + first + 16 * g, sums[q][g]);
}

TARGET_VNNI INLINE void attend_queries(const Head *head, int token, const int m)
{
    const float *queries = head->qkv + token * 3L * head->hidden;
    int first = 0;
    if (m <= WIDE_QUERIES) /* four vectors of sums for each more than that do not fit into registers */
        for (; first + 64 <= head->padded; first += 64) score_block(head, queries, first, m, 4);
    for (; first + 32 < head->padded && m <= WIDE_QUERIES; first += 48) score_block(head, queries, first, m, 3);
    for (; first + 32 <= head->padded; first += 32) score_block(head, queries, first, m, 2);
    if (first < head->padded) score_block(head, queries, first, m, 1);
#pragma GCC unroll 8
    for (int q = 0; q < m; q++) softmax_wide(head->scores + q * head->padded, head->num_tokens);
    first = 0;
    for (; first + 32 <= head->head_dim; first += 32) mix_block(head, token, first, m, 2);
    if (first < head->head_dim) mix_block(head, token, first, m, 1);
}

TARGET_VNNI static void attend_vnni(const Head *head)
{
    const long stride = 3L * head->hidden;
    const float *keys = head->qkv + head->hidden;
    for (int s = 0; s < head->padded; s += 16)
        for (int i = 0; i < head->head_dim; i += 16)
            turn_block(keys + s * stride + i, stride, head->num_tokens - s, head->turned + (long)i * head->padded + s,
                       head->padded);
    const int most = head->padded <= 32 ? QUERIES : WIDE_QUERIES;
    const int num = head->end - head->first, num_blocks = (num + most - 1) / most;
    int token = head->first;
    for (int block = 0; block < num_blocks; block++) {
        const int m = (head->end - token + num_blocks - block - 1) / (num_blocks - block);
        switch (m) {
        case 1: attend_queries(head, token, 1); break;
        case 2: attend_queries(head, token, 2); break;
        case 3: attend_queries(head, token, 3); break;
        case 4: attend_queries(head, token, 4); break;
        case 5: attend_queries(head, token, 5); break;
        case 6: attend_queries(head, token, 6); break;
        case 7: attend_queries(head, token, 7); break;
        default: attend_queries(head, token, 8);
        }
        token += m;
    }
}
#endif

#endif

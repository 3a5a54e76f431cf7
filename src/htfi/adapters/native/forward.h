/* One forward pass of a Llama or Qwen3 network, rows taken a few at a time; the module core calls it. */
#ifndef HTFI_FORWARD_H
#define HTFI_FORWARD_H

#include "matmul.h"

enum { PASS_TOKENS = 64 }; /* worked on at once, where rows are shorter than that */
#define UNSEEN (-1e8f)     /* a mask below it hides: places at the end are skipped */

typedef struct {
    Linear qkv, out, gate_up, down;
    const float *in_norm, *post_norm, *q_norm, *k_norm; /* the last two may be null */
} Layer;

typedef struct {
    int num_layers, num_heads, num_kv_heads, head_dim, hidden, inner, vocab, max_positions;
    float eps;
    const float *embed, *cosines, *sines, *norm; /* [V, H]; [P, D / 2] twice; [H] */
    Layer *layers;
    Linear head;
    int is_packed, level; /* which multiplication: 2 VNNI, 1 AVX2, 0 any */
} Model;

typedef struct {
    int num_rows, num_new, num_past;
    const int64_t *ids, *positions;
    const float *mask, *keys, *values;
    float *logits, *new_keys, *new_values;
    long layer_step, row_step, head_step;             /* from one to the next in keys and values, in numbers */
    long new_layer_step, new_row_step, new_head_step; /* in the new ones */
    int is_chain; /* one row, all of its past seen, mask [S] of zeros; logits [count] of the last token alone, */
    int head_first, head_count; /* for these tokens */
} Pass;

typedef struct {
    float *residual, *value, *wide, *mixed, *scores; /* [M, ...] of the rows worked on */
    Rounded rounded;
} Scratch;

typedef void (*Score)(const float *q, const float *keys, const float *mask, float *out, int n, int d, float scale);

typedef struct {
    Multiply multiply;
    Score score;
} Kernels;

INLINE float exponential(float x) /* within 2 units in the last place, for x from -87 to 87; vectorises */
{
    x = fminf(fmaxf(x, -87.0f), 87.0f);
    const float turned = x * 1.44269504f;
    const int32_t power = (int32_t)(turned + copysignf(0.5f, turned));
    const float f = (x - (float)power * 0.693359375f) + (float)power * 2.12194440e-4f;
    float sum = 1.9875691500e-4f; /* Cephes' expf */
    sum = sum * f + 1.3981999507e-3f;
    sum = sum * f + 8.3334519073e-3f;
    sum = sum * f + 4.1665795894e-2f;
    sum = sum * f + 1.6666665459e-1f;
    sum = sum * f + 5.0000001201e-1f;
    sum = sum * f * f + f + 1.0f;
    union { int32_t bits; float number; } scale = {(power + 127) << 23};
    return sum * scale.number;
}

INLINE void rms_norm(const float *x, const float *restrict gain, float *out, int n, float eps)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    const float unit = 1.0f / sqrtf(sum / (float)n + eps);
    for (int i = 0; i < n; i++) out[i] = x[i] * unit * gain[i];
}

INLINE void turn(float *restrict head, const float *restrict cosines, const float *restrict sines, int half)
{
    for (int i = 0; i < half; i++) {
        const float a = head[i], b = head[i + half];
        head[i] = a * cosines[i] - b * sines[i];
        head[i + half] = b * cosines[i] + a * sines[i];
    }
}

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

/* Queries and keys normed and turned in place, keys and values of the new tokens put where they are given back. */
INLINE void place_heads(const Model *m, const Layer *at, const Pass *pass, int layer, int row, int t, float *heads)
{
    const int d = m->head_dim, n = m->num_heads, groups = m->num_kv_heads;
    const long position = pass->positions[(long)row * pass->num_new + t];
    for (int h = 0; h < n + groups; h++) {
        float *head = heads + (long)h * d;
        const float *gain = h < n ? at->q_norm : at->k_norm;
        if (gain) rms_norm(head, gain, head, d, m->eps);
        turn(head, m->cosines + position * (d / 2), m->sines + position * (d / 2), d / 2);
    }
    for (int g = 0; g < groups; g++) {
        const long place =
            layer * pass->new_layer_step + row * pass->new_row_step + g * pass->new_head_step + (long)t * d;
        memcpy(pass->new_keys + place, heads + (long)(n + g) * d, sizeof(float) * d);
        memcpy(pass->new_values + place, heads + (long)(n + groups + g) * d, sizeof(float) * d);
    }
}

INLINE void apply(const Model *m, const Linear *linear, const float *x, int num_tokens, float *out, Scratch *scratch,
                  Kernels kernels)
{
    for (int t = 0; t < num_tokens; t++)
        round_token(x + (long)t * linear->num_inputs, linear, &scratch->rounded, t, m->is_packed);
    kernels.multiply(linear, &scratch->rounded, num_tokens, out, linear->num_outputs);
}

INLINE void add_to(float *restrict sum, const float *restrict term, long n)
{
    for (long i = 0; i < n; i++) sum[i] += term[i];
}

/* SiLU of the first half times the second. */
INLINE void gate_up(const float *restrict both, float *restrict out, int n)
{
    for (int i = 0; i < n; i++) out[i] = both[i] / (1.0f + exponential(-both[i])) * both[n + i];
}

/* Rows `row` to `row + num` of a pass. */
INLINE void run_rows(const Model *m, const Pass *pass, int row, int num, Scratch *s, Kernels kernels)
{
    const int t_new = pass->num_new, tokens = num * t_new, hidden = m->hidden, d = m->head_dim, inner = m->inner;
    const int all = m->num_heads + 2 * m->num_kv_heads;
    const int64_t *ids = pass->ids + (long)row * t_new;
    for (int t = 0; t < tokens; t++)
        memcpy(s->residual + (long)t * hidden, m->embed + ids[t] * hidden, sizeof(float) * hidden);
    for (int layer = 0; layer < m->num_layers; layer++) {
        const Layer *at = m->layers + layer;
        for (int t = 0; t < tokens; t++)
            rms_norm(s->residual + (long)t * hidden, at->in_norm, s->value + (long)t * hidden, hidden, m->eps);
        apply(m, &at->qkv, s->value, tokens, s->wide, s, kernels);
        for (int t = 0; t < tokens; t++)
            place_heads(m, at, pass, layer, row + t / t_new, t % t_new, s->wide + (long)t * all * d);
        for (int r = 0; r < num; r++) {
            const float *wide = s->wide + (long)r * t_new * all * d;
            float *mixed = s->mixed + (long)r * t_new * m->num_heads * d;
#define CALL(size) attend(m, pass, layer, row + r, wide, mixed, s->scores, kernels.score, size)
            BY_HEAD_SIZE(CALL, d)
#undef CALL
        }
        apply(m, &at->out, s->mixed, tokens, s->value, s, kernels);
        add_to(s->residual, s->value, (long)tokens * hidden);
        for (int t = 0; t < tokens; t++)
            rms_norm(s->residual + (long)t * hidden, at->post_norm, s->value + (long)t * hidden, hidden, m->eps);
        apply(m, &at->gate_up, s->value, tokens, s->wide, s, kernels);
        for (int t = 0; t < tokens; t++) gate_up(s->wide + (long)t * 2 * inner, s->mixed + (long)t * inner, inner);
        apply(m, &at->down, s->mixed, tokens, s->value, s, kernels);
        add_to(s->residual, s->value, (long)tokens * hidden);
    }
    if (pass->is_chain) {
        Linear head = m->head; /* whole packs of its rows, from the first that is asked for */
        head.rows += (long)pass->head_first * head.width;
        head.scales += pass->head_first;
        head.num_outputs = pass->head_count;
        rms_norm(s->residual + (long)(tokens - 1) * hidden, m->norm, s->value, hidden, m->eps);
        apply(m, &head, s->value, 1, pass->logits, s, kernels);
        return;
    }
    for (int t = 0; t < tokens; t++)
        rms_norm(s->residual + (long)t * hidden, m->norm, s->value + (long)t * hidden, hidden, m->eps);
    apply(m, &m->head, s->value, tokens, pass->logits + (long)row * t_new * m->vocab, s, kernels);
}

INLINE void run_pass(const Model *m, const Pass *pass, Scratch *scratch, int rows_at_once, Kernels kernels)
{
    for (int row = 0; row < pass->num_rows; row += rows_at_once) {
        const int left = pass->num_rows - row;
        run_rows(m, pass, row, left < rows_at_once ? left : rows_at_once, scratch, kernels);
    }
}

static void run_default(const Model *m, const Pass *p, Scratch *s, int rows)
{
    run_pass(m, p, s, rows, (Kernels){multiply_default, score_default});
}

#ifdef HTFI_X86
TARGET_AVX2 static void run_avx2(const Model *m, const Pass *p, Scratch *s, int rows)
{
    run_pass(m, p, s, rows, (Kernels){multiply_avx2, score_avx2});
}
TARGET_VNNI static void run_vnni(const Model *m, const Pass *p, Scratch *s, int rows)
{
    run_pass(m, p, s, rows, (Kernels){multiply_vnni, score_vnni});
}
#endif

/* The best that this processor runs: 2 AVX-512 with VNNI, 1 AVX2, 0 neither. */
static int processor_level(void)
{
#ifdef HTFI_X86
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

/* The whole pass. Returns whether there was memory for it. */
static int forward(const Model *m, const Pass *pass)
{
    const int rows_at_once = PASS_TOKENS / pass->num_new > 1 ? PASS_TOKENS / pass->num_new : 1;
    const int rows = rows_at_once < pass->num_rows ? rows_at_once : pass->num_rows;
    const long tokens = (long)rows * pass->num_new, d = m->head_dim;
    const long qkv = (m->num_heads + 2 * m->num_kv_heads) * d, both = 2L * m->inner, mixed = m->num_heads * d;
    const long wide = qkv > both ? qkv : both;
    long most = mixed > m->inner ? mixed : m->inner; /* the widest input of a product */
    if (most < m->hidden) most = m->hidden;
    const long width = rounded_up((int)most, 32);
    const long floats = tokens * (2L * m->hidden + wide + most + 3 + width) + pass->num_past + pass->num_new + 64;
    float *memory = malloc(sizeof(float) * (size_t)floats);
    if (!memory) return 0;
    Scratch s;
    s.residual = memory;
    s.value = s.residual + tokens * m->hidden;
    s.wide = s.value + tokens * m->hidden;
    s.mixed = s.wide + tokens * wide;
    s.scores = s.mixed + tokens * most;
    s.rounded.scales = s.scores + pass->num_past + pass->num_new;
    s.rounded.sums = (int32_t *)(s.rounded.scales + tokens);
    s.rounded.whole = (int16_t *)(s.rounded.sums + 2 * tokens);
#ifdef HTFI_X86
    if (m->level == 2) run_vnni(m, pass, &s, rows);
    else if (m->level == 1) run_avx2(m, pass, &s, rows);
    else
#endif
        run_default(m, pass, &s, rows);
    free(memory);
    return 1;
}

#endif

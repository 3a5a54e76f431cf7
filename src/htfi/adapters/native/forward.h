/* One forward pass of a Llama or Qwen3 network, rows taken a few at a time; the module core calls it. */
#ifndef HTFI_FORWARD_H
#define HTFI_FORWARD_H

#include "matmul.h"

enum { PASS_TOKENS = 64 }; /* worked on at once, where rows are shorter than that */
#define UNSEEN (-1e8f)     /* a mask below it hides for good: exp of it is 0 beside any score */

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
} Pass;

typedef struct {
    float *residual, *value, *wide, *mixed, *scores; /* [M, ...] of the rows worked on */
    Rounded rounded;
} Scratch;

INLINE float exponential(float x) /* within 2 units in the last place, for x from -87 to 87; vectorises */
{
    x = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
    const float turned = x * 1.44269504f;
    const int32_t power = (int32_t)(turned + (turned < 0 ? -0.5f : 0.5f));
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

INLINE void rms_norm(const float *x, const float *gain, float *out, int n, float eps)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    const float unit = 1.0f / sqrtf(sum / (float)n + eps);
    for (int i = 0; i < n; i++) out[i] = x[i] * unit * gain[i];
}

INLINE void turn(float *head, const float *cosines, const float *sines, int half)
{
    for (int i = 0; i < half; i++) {
        const float a = head[i], b = head[i + half];
        head[i] = a * cosines[i] - b * sines[i];
        head[i + half] = b * cosines[i] + a * sines[i];
    }
}

/* Scores of one query with `n` keys; the greatest. */
INLINE float score(const float *restrict q, const float *restrict keys, const float *mask, float *restrict out, int n,
                   const int d, float scale)
{
    float best = -INFINITY;
    for (int s = 0; s < n; s++) {
        float sum = 0.0f;
        for (int i = 0; i < d; i++) sum += q[i] * keys[(long)s * d + i];
        out[s] = sum * scale + mask[s];
    }
    for (int s = 0; s < n; s++) best = out[s] > best ? out[s] : best;
    return best;
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
INLINE void attend(const Model *m, const Pass *pass, int layer, int row, const float *wide, float *mixed, float *scores,
                   const int d)
{
    const int heads = m->num_heads, groups = m->num_kv_heads, t_new = pass->num_new, past = pass->num_past;
    const int all = heads + 2 * groups, shared = heads / groups;
    const float scale = 1.0f / sqrtf((float)d);
    const long place = (long)layer * pass->num_rows + row;
    for (int t = 0; t < t_new; t++) {
        const float *mask = pass->mask + ((long)row * t_new + t) * (past + t_new);
        int seen = past, reach = t_new; /* what lies beyond is hidden */
        while (seen > 0 && mask[seen - 1] < UNSEEN) seen--;
        while (reach > 1 && mask[past + reach - 1] < UNSEEN) reach--;
        for (int h = 0; h < heads; h++) {
            const int g = h / shared;
            const float *q = wide + ((long)t * all + h) * d;
            const float *keys = pass->keys + (place * groups + g) * past * d;
            const float *values = pass->values + (place * groups + g) * past * d;
            const float *new_keys = pass->new_keys + (place * groups + g) * t_new * d;
            const float *new_values = pass->new_values + (place * groups + g) * t_new * d;
            const float old = score(q, keys, mask, scores, seen, d, scale);
            float best = score(q, new_keys, mask + past, scores + seen, reach, d, scale);
            best = old > best ? old : best;
            float total = 0.0f;
            for (int s = 0; s < seen + reach; s++) {
                scores[s] = scores[s] - best < -87.0f ? 0.0f : exponential(scores[s] - best);
                total += scores[s];
            }
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
            ((((long)layer * pass->num_rows + row) * groups + g) * pass->num_new + t) * d;
        memcpy(pass->new_keys + place, heads + (long)(n + g) * d, sizeof(float) * d);
        memcpy(pass->new_values + place, heads + (long)(n + groups + g) * d, sizeof(float) * d);
    }
}

INLINE void apply(const Model *m, const Linear *linear, const float *x, int num_tokens, float *out, Scratch *scratch,
                  Multiply multiply)
{
    for (int t = 0; t < num_tokens; t++)
        round_token(x + (long)t * linear->num_inputs, linear, &scratch->rounded, t, m->is_packed);
    multiply(linear, &scratch->rounded, num_tokens, out, linear->num_outputs);
}

/* Rows `row` to `row + num` of a pass. */
INLINE void run_rows(const Model *m, const Pass *pass, int row, int num, Scratch *s, Multiply multiply)
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
        apply(m, &at->qkv, s->value, tokens, s->wide, s, multiply);
        for (int t = 0; t < tokens; t++)
            place_heads(m, at, pass, layer, row + t / t_new, t % t_new, s->wide + (long)t * all * d);
        for (int r = 0; r < num; r++) {
            const float *wide = s->wide + (long)r * t_new * all * d;
            float *mixed = s->mixed + (long)r * t_new * m->num_heads * d;
            switch (d) { /* sizes known to the compiler are several times faster */
            case 16: attend(m, pass, layer, row + r, wide, mixed, s->scores, 16); break;
            case 32: attend(m, pass, layer, row + r, wide, mixed, s->scores, 32); break;
            case 64: attend(m, pass, layer, row + r, wide, mixed, s->scores, 64); break;
            default: attend(m, pass, layer, row + r, wide, mixed, s->scores, d);
            }
        }
        apply(m, &at->out, s->mixed, tokens, s->value, s, multiply);
        for (long i = 0; i < (long)tokens * hidden; i++) s->residual[i] += s->value[i];
        for (int t = 0; t < tokens; t++)
            rms_norm(s->residual + (long)t * hidden, at->post_norm, s->value + (long)t * hidden, hidden, m->eps);
        apply(m, &at->gate_up, s->value, tokens, s->wide, s, multiply);
        for (int t = 0; t < tokens; t++) {
            const float *gate = s->wide + (long)t * 2 * inner;
            float *out = s->mixed + (long)t * inner;
            for (int i = 0; i < inner; i++) out[i] = gate[i] / (1.0f + exponential(-gate[i])) * gate[inner + i]; /* SiLU */
        }
        apply(m, &at->down, s->mixed, tokens, s->value, s, multiply);
        for (long i = 0; i < (long)tokens * hidden; i++) s->residual[i] += s->value[i];
    }
    for (int t = 0; t < tokens; t++)
        rms_norm(s->residual + (long)t * hidden, m->norm, s->value + (long)t * hidden, hidden, m->eps);
    apply(m, &m->head, s->value, tokens, pass->logits + (long)row * t_new * m->vocab, s, multiply);
}

INLINE void run_pass(const Model *m, const Pass *pass, Scratch *scratch, int rows_at_once, Multiply multiply)
{
    for (int row = 0; row < pass->num_rows; row += rows_at_once) {
        const int left = pass->num_rows - row;
        run_rows(m, pass, row, left < rows_at_once ? left : rows_at_once, scratch, multiply);
    }
}

static void run_default(const Model *m, const Pass *p, Scratch *s, int rows) { run_pass(m, p, s, rows, multiply_default); }
#ifdef HTFI_X86
TARGET_AVX2 static void run_avx2(const Model *m, const Pass *p, Scratch *s, int rows)
{
    run_pass(m, p, s, rows, multiply_avx2);
}
TARGET_VNNI static void run_vnni(const Model *m, const Pass *p, Scratch *s, int rows)
{
    run_pass(m, p, s, rows, multiply_vnni);
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

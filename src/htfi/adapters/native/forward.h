/* One forward pass of a Llama or Qwen3 network, rows taken a few at a time; the module core calls it. */
#ifndef HTFI_FORWARD_H
#define HTFI_FORWARD_H

#include "attention.h"

typedef struct {
    Multiply multiply;
    Score score;
} Kernels;

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
    const int64_t begin = (int64_t)row * t_new;
    int first = 0, count = 0; /* the scored tokens of these rows */
    while (first < pass->num_scored && pass->scored[first] < begin) first++;
    for (; first + count < pass->num_scored && pass->scored[first + count] < begin + tokens; count++)
        rms_norm(s->residual + (pass->scored[first + count] - begin) * hidden, m->norm, s->value + (long)count * hidden,
                 hidden, m->eps);
    apply(m, &m->head, s->value, count, pass->logits + (long)first * m->vocab, s, kernels);
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

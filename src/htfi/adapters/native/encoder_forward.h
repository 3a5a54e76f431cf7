/* One pass of the sentence encoder over texts one behind the other; the module encoder_core calls it. */
#ifndef HTFI_ENCODER_FORWARD_H
#define HTFI_ENCODER_FORWARD_H

#include "encoder_attention.h"

enum { PASS_TOKENS = 64 }; /* of whole texts that are worked on at once; a longer text is alone */

typedef struct {
    const float *inverse; /* [H], what the input of a product is multiplied by */
    const float *gain, *shift; /* [H], of the norm that follows */
    float step;                /* of the input's bytes */
} Around;

typedef struct {
    Product qkv, out, up, down;
    Around attention, feed; /* `feed` without a step for down, whose bytes have `share_step` */
    float mixed_step, share_step;
} Layer;

typedef struct {
    int num_layers, num_heads, head_dim, hidden, inner, vocab, max_positions, level;
    float eps, least;                 /* `least`: of the largest of a row behind GELU */
    const int8_t *words;              /* [V, H] */
    const float *word_scales, *places; /* [V]; [P, H] */
    const float *gain, *shift;
    Layer *layers;
} Model;

/* Memory of one thread, for `rows` rows. */
typedef struct {
    float *value, *wide, *mixed, *factors, *turned, *scores;
    uint8_t *bytes;
    int16_t *block;
} Scratch;

/* Whole texts that are worked on together. */
typedef struct {
    const int64_t *ids;     /* [T] */
    const int32_t *lengths; /* [texts] */
    int num_texts, num_tokens;
    float *states; /* [T, H] */
    float *qkv[2]; /* [T, 3 H]; one of them is read by a step, the other written: for one thread both may be its s->wide */
} Pass;

typedef struct {
    Multiply multiply;
    Attend attend;
    void (*norm_rows)(const float *from, int num_rows, const float *gain, const float *shift, float *to, int n, float eps);
    float (*gelu)(float *x, int n, float least);
    void (*bytes_in_range)(const float *x, const float *inverse, float step, uint8_t *out, int n);
    void (*bytes_of)(const float *x, float step, uint8_t *out, int n);
    void (*bytes_of_shares)(const float *x, float largest, float step, uint8_t *out, int n);
} Kernels;

/* Words and places of tokens `first` to before `end`, summed and not yet normed. */
INLINE void embed(const Model *m, const Pass *pass, int first, int end, float *restrict out)
{
    const int hidden = m->hidden;
    int token = 0;
    for (int text = 0; text < pass->num_texts; text++)
        for (int t = 0; t < pass->lengths[text]; t++, token++) {
            if (token < first || token >= end) continue;
            const long id = pass->ids[token];
            const int8_t *restrict word = m->words + id * hidden;
            const float *restrict place = m->places + (long)t * hidden;
            const float scale = m->word_scales[id];
            for (int i = 0; i < hidden; i++) out[i] = (float)word[i] * scale + place[i];
            out += hidden;
        }
}

/* What tokens `first` to before `end` make of the queries, keys and values of their texts, to s->mixed. */
INLINE void attention(const Model *m, const Pass *pass, const float *qkv, int first, int end, const Scratch *s,
                      Kernels kernels)
{
    int token = 0;
    for (int text = 0; text < pass->num_texts; token += pass->lengths[text++]) {
        const int length = pass->lengths[text], from = first > token ? first - token : 0;
        const int to = end - token < length ? end - token : length;
        if (from >= to) continue;
        for (int h = 0; h < m->num_heads; h++) {
            const Head head = {
                .qkv = qkv + (long)token * 3 * m->hidden + h * m->head_dim,
                .mixed = s->mixed + (long)(token + from - first) * m->hidden + h * m->head_dim,
                .turned = s->turned,
                .scores = s->scores,
                .num_tokens = length,
                .padded = (length + LANES - 1) / LANES * LANES,
                .head_dim = m->head_dim,
                .hidden = m->hidden,
                .first = from,
                .end = to,
                .scale = (float)(1.0 / sqrt((double)m->head_dim)),
            };
            kernels.attend(&head);
        }
    }
}

/* Queries, keys and values that layer `at` makes of the states of `num` tokens. */
INLINE void project(const Model *m, const Layer *at, const float *states, int num, float *qkv, const Scratch *s,
                    Kernels kernels)
{
    const int hidden = m->hidden;
    for (long t = 0; t < num; t++)
        kernels.bytes_in_range(states + t * hidden, at->attention.inverse, at->attention.step, s->bytes + t * hidden, hidden);
    kernels.multiply(&at->qkv, s->bytes, num, (Result){qkv, NULL, NULL}, s->block);
}

/* One step of a pass for tokens `first` to before `end`: step 0 makes their states of words and places, step l those that
 * layer l - 1 gives; each then what the next layer's attention reads of them. A step needs all tokens' step before. */
INLINE void run_step(const Model *m, const Pass *pass, int step, int first, int end, const Scratch *s, Kernels kernels)
{
    const int hidden = m->hidden, inner = m->inner, num = end - first;
    float *states = pass->states + (long)first * hidden, *qkv = pass->qkv[step % 2] + (long)first * 3 * hidden;
    if (num <= 0) return;
    if (step == 0) {
        embed(m, pass, first, end, s->value);
        kernels.norm_rows(s->value, num, m->gain, m->shift, states, hidden, m->eps);
        project(m, m->layers, states, num, qkv, s, kernels);
        return;
    }
    const Layer *at = m->layers + step - 1;
    attention(m, pass, pass->qkv[(step - 1) % 2], first, end, s, kernels);
    kernels.bytes_of(s->mixed, at->mixed_step, s->bytes, num * hidden);
    kernels.multiply(&at->out, s->bytes, num, (Result){s->value, NULL, states}, s->block);
    kernels.norm_rows(s->value, num, at->attention.gain, at->attention.shift, states, hidden, m->eps);
    for (long t = 0; t < num; t++)
        kernels.bytes_in_range(states + t * hidden, at->feed.inverse, at->feed.step, s->bytes + t * hidden, hidden);
    kernels.multiply(&at->up, s->bytes, num, (Result){s->wide, NULL, NULL}, s->block);
    for (long t = 0; t < num; t++) {
        s->factors[t] = kernels.gelu(s->wide + t * inner, inner, m->least);
        kernels.bytes_of_shares(s->wide + t * inner, s->factors[t], at->share_step, s->bytes + t * inner, inner);
    }
    kernels.multiply(&at->down, s->bytes, num, (Result){s->value, s->factors, states}, s->block);
    kernels.norm_rows(s->value, num, at->feed.gain, at->feed.shift, states, hidden, m->eps);
    if (step < m->num_layers) project(m, at + 1, states, num, qkv, s, kernels);
}

static void step_default(const Model *m, const Pass *pass, int step, int first, int end, const Scratch *s)
{
    run_step(m, pass, step, first, end, s,
             (Kernels){multiply_plain, attend_default, norm_rows_plain, gelu, bytes_in_range, bytes_of, bytes_of_shares});
}

#ifdef HTFI_X86
TARGET_AVX2 static void step_avx2(const Model *m, const Pass *pass, int step, int first, int end, const Scratch *s)
{
    run_step(m, pass, step, first, end, s,
             (Kernels){multiply_avx2, attend_avx2, norm_rows_plain, gelu, bytes_in_range, bytes_of, bytes_of_shares});
}

TARGET_VNNI static void step_vnni(const Model *m, const Pass *pass, int step, int first, int end, const Scratch *s)
{
    run_step(m, pass, step, first, end, s,
             (Kernels){multiply_vnni, attend_vnni, norm_rows_wide, gelu_wide, bytes_in_range_wide, bytes_of_wide,
                       bytes_of_shares_wide});
}
#endif

/* `run_step` by the instructions of the model's level. */
static void step_rows(const Model *m, const Pass *pass, int step, int first, int end, const Scratch *s)
{
#ifdef HTFI_X86
    if (m->level == 2) return step_vnni(m, pass, step, first, end, s);
    if (m->level == 1) return step_avx2(m, pass, step, first, end, s);
#endif
    step_default(m, pass, step, first, end, s);
}

/* Each text's sum of states, one token after the other. */
INLINE void sum_states(const float *states, int num_tokens, int hidden, float *restrict sum)
{
    for (int i = 0; i < hidden; i++) sum[i] = states[i];
    for (int t = 1; t < num_tokens; t++)
        for (int i = 0; i < hidden; i++) sum[i] += states[(long)t * hidden + i];
}

typedef struct {
    const int64_t *ids;     /* [all tokens] */
    const int32_t *lengths; /* [texts], of each from 1 to max_positions */
    int num_texts;
    float *states, *sums; /* [all tokens, H], [texts, H] */
} Texts;

/* All integer products of passes over `num_tokens` tokens, of zeros, and nothing else: the floor of `encode`. */
static int multiply_only(const Model *m, int num_tokens)
{
    const int widest = m->inner > 3 * m->hidden ? m->inner : 3 * m->hidden;
    const int deepest = m->inner > m->hidden ? m->inner : m->hidden;
    float *out = calloc((size_t)PASS_TOKENS * widest, sizeof(float));
    uint8_t *bytes = calloc((size_t)PASS_TOKENS * deepest, 1);
    int16_t *block = calloc((size_t)AVX2_ROWS * deepest, sizeof(int16_t));
    Multiply multiply = multiply_plain;
#ifdef HTFI_X86
    multiply = m->level == 2 ? multiply_vnni : m->level == 1 ? multiply_avx2 : multiply_plain;
#endif
    const int there_was_memory = out && bytes && block;
    for (int done = 0; there_was_memory && done < num_tokens; done += PASS_TOKENS) {
        const int rows = num_tokens - done < PASS_TOKENS ? num_tokens - done : PASS_TOKENS;
        for (int l = 0; l < m->num_layers; l++) {
            const Layer *at = m->layers + l;
            const Product *products[] = {&at->qkv, &at->out, &at->up, &at->down};
            for (int i = 0; i < 4; i++) multiply(products[i], bytes, rows, (Result){out, NULL, NULL}, block);
        }
    }
    free(out), free(bytes), free(block);
    return there_was_memory;
}

static int processor_level(void)
{
#ifdef HTFI_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

INLINE char *taken(char **memory, size_t size)
{
    char *here = *memory;
    *memory += (size + 63) / 64 * 64;
    return here;
}

/* Scratch for passes of up to `rows` tokens, to be freed; null without memory. s->wide has room for queries, keys and values
 * too. */
static Scratch *new_scratch(const Model *m, int rows_wanted)
{
    const int deepest = m->inner > m->hidden ? m->inner : m->hidden;
    const int widest = m->inner > 3 * m->hidden ? m->inner : 3 * m->hidden;
    const size_t rows = (size_t)rows_wanted, padded = (rows + LANES - 1) / LANES * LANES, f = sizeof(float);
    const size_t sizes[] = {rows * m->hidden * f, rows * widest * f, rows * m->hidden * f, rows * f,
                            padded * m->head_dim * f, padded * QUERIES * f, rows * deepest,
                            (size_t)AVX2_ROWS * deepest * sizeof(int16_t)};
    size_t size = sizeof(Scratch) + 64;
    for (int i = 0; i < 8; i++) size += (sizes[i] + 63) / 64 * 64;
    Scratch *s = malloc(size);
    if (!s) return NULL;
    char *from = (char *)(((uintptr_t)(s + 1) + 63) / 64 * 64);
    s->value = (float *)taken(&from, sizes[0]);
    s->wide = (float *)taken(&from, sizes[1]);
    s->mixed = (float *)taken(&from, sizes[2]);
    s->factors = (float *)taken(&from, sizes[3]);
    s->turned = (float *)taken(&from, sizes[4]);
    s->scores = (float *)taken(&from, sizes[5]);
    s->bytes = (uint8_t *)taken(&from, sizes[6]);
    s->block = (int16_t *)taken(&from, sizes[7]);
    return s;
}

#endif

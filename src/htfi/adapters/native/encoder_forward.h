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

typedef struct {
    float *value, *wide, *mixed, *factors, *turned, *scores;
    uint8_t *bytes;
    int16_t *block;
} Scratch;

typedef struct {
    Multiply multiply;
    Attend attend;
    void (*norm_rows)(const float *from, int num_rows, const float *gain, const float *shift, float *to, int n, float eps);
    float (*gelu)(float *x, int n, float least);
} Kernels;

/* Words and places, summed and not yet normed. */
INLINE void embed(const Model *m, const int64_t *ids, const int32_t *lengths, int num_texts, float *restrict out)
{
    const int hidden = m->hidden;
    for (int text = 0; text < num_texts; text++)
        for (int t = 0; t < lengths[text]; t++, ids++, out += hidden) {
            const int8_t *restrict word = m->words + *ids * hidden;
            const float *restrict place = m->places + (long)t * hidden;
            const float scale = m->word_scales[*ids];
            for (int i = 0; i < hidden; i++) out[i] = (float)word[i] * scale + place[i];
        }
}

INLINE void attention(const Model *m, const Scratch *s, const int32_t *lengths, int num_texts, Kernels kernels)
{
    long token = 0;
    for (int text = 0; text < num_texts; token += lengths[text++])
        for (int h = 0; h < m->num_heads; h++) {
            const Head head = {
                .qkv = s->wide + token * 3 * m->hidden + h * m->head_dim,
                .mixed = s->mixed + token * m->hidden + h * m->head_dim,
                .turned = s->turned,
                .scores = s->scores,
                .num_tokens = lengths[text],
                .padded = (lengths[text] + LANES - 1) / LANES * LANES,
                .head_dim = m->head_dim,
                .hidden = m->hidden,
                .scale = (float)(1.0 / sqrt((double)m->head_dim)),
            };
            kernels.attend(&head);
        }
}

/* States of whole texts with `tokens` tokens together. */
INLINE void run_texts(const Model *m, const int64_t *ids, const int32_t *lengths, int num_texts, int tokens, float *states,
                      const Scratch *s, Kernels kernels)
{
    const int hidden = m->hidden, inner = m->inner;
    embed(m, ids, lengths, num_texts, s->value);
    kernels.norm_rows(s->value, tokens, m->gain, m->shift, states, hidden, m->eps);
    for (int l = 0; l < m->num_layers; l++) {
        const Layer *at = m->layers + l;
        for (long t = 0; t < tokens; t++)
            bytes_in_range(states + t * hidden, at->attention.inverse, at->attention.step, s->bytes + t * hidden, hidden);
        kernels.multiply(&at->qkv, s->bytes, tokens, (Result){s->wide, NULL, NULL}, s->block);
        attention(m, s, lengths, num_texts, kernels);
        bytes_of(s->mixed, at->mixed_step, s->bytes, tokens * hidden);
        kernels.multiply(&at->out, s->bytes, tokens, (Result){s->value, NULL, states}, s->block);
        kernels.norm_rows(s->value, tokens, at->attention.gain, at->attention.shift, states, hidden, m->eps);
        for (long t = 0; t < tokens; t++)
            bytes_in_range(states + t * hidden, at->feed.inverse, at->feed.step, s->bytes + t * hidden, hidden);
        kernels.multiply(&at->up, s->bytes, tokens, (Result){s->wide, NULL, NULL}, s->block);
        for (long t = 0; t < tokens; t++) {
            s->factors[t] = kernels.gelu(s->wide + t * inner, inner, m->least);
            bytes_of_shares(s->wide + t * inner, s->factors[t], at->share_step, s->bytes + t * inner, inner);
        }
        kernels.multiply(&at->down, s->bytes, tokens, (Result){s->value, s->factors, states}, s->block);
        kernels.norm_rows(s->value, tokens, at->feed.gain, at->feed.shift, states, hidden, m->eps);
    }
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

INLINE void run_all(const Model *m, const Texts *of, const Scratch *s, Kernels kernels)
{
    long token = 0;
    for (int text = 0; text < of->num_texts;) {
        int num = 1, tokens = of->lengths[text];
        while (text + num < of->num_texts && tokens + of->lengths[text + num] <= PASS_TOKENS)
            tokens += of->lengths[text + num++];
        float *states = of->states + token * m->hidden;
        run_texts(m, of->ids + token, of->lengths + text, num, tokens, states, s, kernels);
        for (; num > 0; num--, text++) {
            sum_states(states, of->lengths[text], m->hidden, of->sums + (long)text * m->hidden);
            states += (long)of->lengths[text] * m->hidden;
        }
        token += tokens;
    }
}

static void run_default(const Model *m, const Texts *of, const Scratch *s)
{
    run_all(m, of, s, (Kernels){multiply_plain, attend_default, norm_rows_plain, gelu});
}

#ifdef HTFI_X86
TARGET_AVX2 static void run_avx2(const Model *m, const Texts *of, const Scratch *s)
{
    run_all(m, of, s, (Kernels){multiply_avx2, attend_avx2, norm_rows_plain, gelu});
}

TARGET_VNNI static void run_vnni(const Model *m, const Texts *of, const Scratch *s)
{
    run_all(m, of, s, (Kernels){multiply_vnni, attend_vnni, norm_rows_wide, gelu_wide});
}
#endif

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

/* Returns whether there was memory. */
static int encode(const Model *m, const Texts *of)
{
    int longest = PASS_TOKENS;
    for (int i = 0; i < of->num_texts; i++) longest = of->lengths[i] > longest ? of->lengths[i] : longest;
    const int widest = m->inner > 3 * m->hidden ? m->inner : 3 * m->hidden;
    const int deepest = m->inner > m->hidden ? m->inner : m->hidden;
    const size_t rows = (size_t)longest, padded = (rows + LANES - 1) / LANES * LANES, f = sizeof(float);
    const size_t sizes[] = {rows * m->hidden * f, rows * widest * f, rows * m->hidden * f, rows * f,
                            padded * m->head_dim * f, padded * QUERIES * f, rows * deepest,
                            (size_t)AVX2_ROWS * deepest * sizeof(int16_t)};
    size_t size = 64;
    for (int i = 0; i < 8; i++) size += (sizes[i] + 63) / 64 * 64;
    char *memory = malloc(size), *from = (char *)(((uintptr_t)memory + 63) / 64 * 64);
    if (!memory) return 0;
    Scratch s;
    s.value = (float *)taken(&from, sizes[0]);
    s.wide = (float *)taken(&from, sizes[1]);
    s.mixed = (float *)taken(&from, sizes[2]);
    s.factors = (float *)taken(&from, sizes[3]);
    s.turned = (float *)taken(&from, sizes[4]);
    s.scores = (float *)taken(&from, sizes[5]);
    s.bytes = (uint8_t *)taken(&from, sizes[6]);
    s.block = (int16_t *)taken(&from, sizes[7]);
#ifdef HTFI_X86
    if (m->level == 2)
        run_vnni(m, of, &s);
    else if (m->level == 1)
        run_avx2(m, of, &s);
    else
#endif
        run_default(m, of, &s);
    free(memory);
    return 1;
}

#endif

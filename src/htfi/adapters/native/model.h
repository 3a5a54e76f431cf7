/* What a network and a pass of it are, and the small arithmetic they share; attention and passes build on it. */
#ifndef HTFI_MODEL_H
#define HTFI_MODEL_H

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
    const int64_t *scored; /* [num_scored] rising places among all rows' tokens, whose logits are wanted */
    int num_scored;
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

#endif

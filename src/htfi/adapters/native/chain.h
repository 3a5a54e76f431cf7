/* A chain of draft tokens for one sequence, read and chosen in one call; the module core calls it. */
#ifndef HTFI_CHAIN_H
#define HTFI_CHAIN_H

#include "../../decoding/choosing.h"
#include "forward.h"

typedef struct {
    const Model *model;
    float *keys, *values; /* of an arena [L, slots, G, capacity, D]; written behind `length` of the slot */
    int num_slots, capacity, slot, length;
    const int64_t *unread; /* settled tokens that the row lacks, one at least */
    int num_unread;
    const int64_t *begins, *tokens, *nexts; /* the form: state s admits tokens begins[s] to begins[s + 1], rising */
    const uint64_t *counters;               /* of the tokens */
    long num_tokens;                        /* of the three arrays */
    int num_states, state, num_chosen, most; /* at most `num_chosen` are chosen, `most` drafted with the forced ones */
    const uint64_t *noise;                  /* keys of the places [most] */
    double temperature;
    int64_t *out; /* tokens and states [2, most] */
    int num_drafted, num_read;
} Chain;

/* Whether nothing of what is given leads outside of an array. */
static int chain_fits(const Chain *c)
{
    const Model *m = c->model;
    if (c->num_unread < 1 || c->most < 1 || c->length < 0 || c->slot < 0 || c->slot >= c->num_slots || !num_bins) return 0;
    if (c->length + c->num_unread + c->most > c->capacity || c->length + c->num_unread + c->most > m->max_positions)
        return 0;
    for (int i = 0; i < c->num_unread; i++)
        if (c->unread[i] < 0 || c->unread[i] >= m->vocab) return 0;
    for (int state = 0; state < c->num_states; state++)
        if (c->begins[state] < 0 || c->begins[state] > c->begins[state + 1]) return 0;
    return c->state >= 0 && c->state < c->num_states && c->begins[c->num_states] <= c->num_tokens;
}

/* Read `num` tokens behind the row's; logits of tokens `first` and on, after the last. */
static int read_tokens(Chain *c, const int64_t *ids, int num, int first, int count, int64_t *positions,
                       const float *zeros, float *logits)
{
    const Model *m = c->model;
    const long d = m->head_dim, head = c->capacity * d, row = head * m->num_kv_heads, layer = row * c->num_slots;
    const int past = c->length + c->num_read;
    const long here = c->slot * row + past * d;
    for (int t = 0; t < num; t++) positions[t] = past + t;
    const Pass pass = {.num_rows = 1, .num_new = num, .num_past = past, .ids = ids, .positions = positions, .mask = zeros,
                       .keys = c->keys + c->slot * row, .values = c->values + c->slot * row, .logits = logits,
                       .new_keys = c->keys + here, .new_values = c->values + here,
                       .layer_step = layer, .row_step = row, .head_step = head,
                       .new_layer_step = layer, .new_row_step = row, .new_head_step = head,
                       .is_chain = 1, .head_first = first, .head_count = count};
    c->num_read += num;
    return forward(m, &pass);
}

/* Draft until the form ends, enough is chosen, or a score is no number. Returns whether there was memory. */
static int draft_chain(Chain *c)
{
    const Model *m = c->model;
    const long width = c->length + c->num_unread + c->most;
    const long scratch = width * (sizeof(float) + 2 * sizeof(int64_t)) + (size_t)(m->vocab + LANES) * sizeof(float);
    const size_t choosing = (size_t)m->vocab * (2 * sizeof(double) + sizeof(uint32_t));
    char *memory = calloc(1, (size_t)scratch + choosing);
    if (!memory) return 0;
    Row row = {.num_ids = 0, .temperature = c->temperature, .scaled = (double *)memory};
    row.bounds = row.scaled + m->vocab;
    int64_t *positions = (int64_t *)(row.bounds + m->vocab), *ids = positions + width;
    float *zeros = (float *)(ids + width), *logits = zeros + width;
    row.bins = (uint32_t *)(logits + m->vocab + LANES);
    int num_ids = c->num_unread, is_done = 1;
    memcpy(ids, c->unread, sizeof(int64_t) * (size_t)num_ids);
    while (is_done && c->num_drafted < c->most) {
        const int64_t begin = c->begins[c->state], end = c->begins[c->state + 1];
        int64_t place = begin;
        if (end <= begin) break; /* the form is done */
        if (end - begin > 1) {
            if (c->num_chosen-- == 0) break;
            const int64_t least = c->tokens[begin], last = c->tokens[end - 1];
            if (least < 0 || last >= m->vocab || last < least) break;
            const int first = (int)least / LANES * LANES;
            is_done = read_tokens(c, ids, num_ids, first, (int)last + 1 - first, positions, zeros, logits);
            if (!is_done) break;
            num_ids = 0;
            row.ids = c->tokens + begin, row.counters = c->counters + begin, row.num_ids = end - begin;
            const uint64_t *key = c->noise + c->num_drafted;
            int64_t token;
            row.logits = NULL;
            if (!choose_here(row, m->vocab, (const char *)(logits - first), 0, key, &token, 1) || token < 0) break;
            while (place < end && c->tokens[place] != token) place++;
        }
        if (place == end || c->tokens[place] < 0 || c->tokens[place] >= m->vocab) break;
        ids[num_ids++] = c->tokens[place];
        c->state = (int)c->nexts[place];
        c->out[c->num_drafted] = c->tokens[place];
        c->out[c->most + c->num_drafted] = c->state;
        c->num_drafted++;
        if (c->state < 0 || c->state >= c->num_states) break;
    }
    free(memory);
    return is_done;
}

#endif

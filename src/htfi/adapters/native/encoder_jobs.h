/* Texts that threads read together, divided into parts of one pass each; encoder_pool.h has the threads.
 *
 * A job of few parts is divided further, so that it is over sooner: two threads work on each, on half of its tokens, and
 * wait for each other once a layer.
 */
#ifndef HTFI_ENCODER_JOBS_H
#define HTFI_ENCODER_JOBS_H

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "encoder_forward.h"

enum { FOLLOW_NS = 600000 }; /* who follows waits so long for the next step */

typedef struct {
    int first_text, num_texts, num_tokens;
    long first_token;
    atomic_int is_done;
} Part;

/* A part that two threads share. The caller opens step after step and does the first half of the tokens; the second half
 * is whoever's takes it first, so that the caller does not wait for a thread that does not run. */
typedef struct {
    Pass pass;
    int half;
    atomic_int num_open;                /* steps that may be worked on; one more at the end */
    atomic_int *is_taken, *is_finished; /* [steps], of the second half */
} Shared;

typedef struct Job {
    const Model *model;
    Texts of;
    Part *parts;
    int num_parts, longest;
    atomic_int next;       /* of the parts, which nobody has taken */
    Shared *shared;        /* [parts]; null where each part is one thread's */
    float *qkv;            /* [2, longest part, 3 H] of the shared part that is worked on */
    atomic_int is_early;   /* read when nothing else is */
    atomic_int is_urgent;  /* counted in the pool's `num_urgent` */
    int max_helpers, num_helpers, is_listed; /* of the pool, under its lock */
    unsigned generation;
    struct Job *after;
} Job;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Pause between two looks at what others do; every so often whoever waits for this core gets it. */
INLINE void pause_briefly(long turn)
{
#ifdef HTFI_X86
    for (int i = 0; i < 8; i++) _mm_pause();
    if (turn % 64 == 63) sched_yield();
#else
    (void)turn;
    sched_yield();
#endif
}

static void sum_texts(const Job *job, const Part *part)
{
    const int hidden = job->model->hidden;
    const float *states = job->of.states + part->first_token * hidden;
    for (int text = part->first_text; text < part->first_text + part->num_texts; text++) {
        sum_states(states, job->of.lengths[text], hidden, job->of.sums + (long)text * hidden);
        states += (long)job->of.lengths[text] * hidden;
    }
}

static Pass pass_of(const Job *job, const Part *part, float *qkv, float *other_qkv)
{
    return (Pass){.ids = job->of.ids + part->first_token, .lengths = job->of.lengths + part->first_text,
                  .num_texts = part->num_texts, .num_tokens = part->num_tokens,
                  .states = job->of.states + part->first_token * job->model->hidden, .qkv = {qkv, other_qkv}};
}

static void read_part(const Job *job, Part *part, const Scratch *s)
{
    const Pass pass = pass_of(job, part, s->wide, s->wide);
    for (int step = 0; step <= job->model->num_layers; step++) step_rows(job->model, &pass, step, 0, pass.num_tokens, s);
    sum_texts(job, part);
    atomic_store(&part->is_done, 1); /* before `num_waiting` is looked at */
}

/* Read a part and let another thread do half of it. */
static void lead(const Job *job, int at, const Scratch *s)
{
    Part *part = job->parts + at;
    Shared *shared = job->shared + at;
    const int num_steps = job->model->num_layers + 1;
    shared->pass = pass_of(job, part, job->qkv, job->qkv + (long)job->longest * 3 * job->model->hidden);
    shared->half = (part->num_tokens + 1) / 2;
    for (int step = 0; step < num_steps; step++) {
        atomic_store_explicit(&shared->num_open, step + 1, memory_order_release);
        step_rows(job->model, &shared->pass, step, 0, shared->half, s);
        if (!atomic_exchange(&shared->is_taken[step], 1))
            step_rows(job->model, &shared->pass, step, shared->half, part->num_tokens, s);
        else
            for (long turn = 0; !atomic_load_explicit(&shared->is_finished[step], memory_order_acquire); turn++)
                pause_briefly(turn);
    }
    atomic_store_explicit(&shared->num_open, num_steps + 1, memory_order_release);
    sum_texts(job, part);
    atomic_store_explicit(&part->is_done, 1, memory_order_release);
}

/* Do the other halves of a job's parts, until it is over or nothing was to be done for long. */
static void follow(const Job *job, const Scratch *s)
{
    const int num_steps = job->model->num_layers + 1;
    int64_t since = now_ns();
    long turn = 0;
    for (int at = 0; at < job->num_parts; at++) {
        Shared *shared = job->shared + at;
        for (int step = 0; step < num_steps;) {
            const int last = atomic_load_explicit(&shared->num_open, memory_order_acquire) - 1;
            if (last < step) {
                pause_briefly(turn++);
                if (now_ns() - since > FOLLOW_NS) return;
                continue;
            }
            step = last;
            if (step < num_steps && !atomic_exchange(&shared->is_taken[step], 1)) {
                step_rows(job->model, &shared->pass, step, shared->half, shared->pass.num_tokens, s);
                atomic_store_explicit(&shared->is_finished[step], 1, memory_order_release);
                since = now_ns();
            }
            step++;
        }
    }
}

static int is_over(const Job *job)
{
    if (!job->shared) return atomic_load(&job->next) >= job->num_parts;
    return atomic_load(&job->parts[job->num_parts - 1].is_done);
}

/* Whole texts one behind the other, as many as fit into a pass. */
static int divide(Job *job)
{
    const Texts *of = &job->of;
    if (!(job->parts = calloc((size_t)of->num_texts + 1, sizeof(Part)))) return 0;
    long token = 0;
    job->longest = PASS_TOKENS;
    for (int text = 0; text < of->num_texts;) {
        int num = 1, tokens = of->lengths[text];
        while (text + num < of->num_texts && tokens + of->lengths[text + num] <= PASS_TOKENS)
            tokens += of->lengths[text + num++];
        Part *part = job->parts + job->num_parts++;
        part->first_text = text, part->num_texts = num, part->num_tokens = tokens, part->first_token = token;
        job->longest = tokens > job->longest ? tokens : job->longest;
        text += num, token += tokens;
    }
    return 1;
}

static int share_parts(Job *job)
{
    const size_t num_steps = (size_t)job->model->num_layers + 1;
    const size_t row = 3 * (size_t)job->model->hidden * sizeof(float);
    if (!(job->shared = calloc((size_t)job->num_parts, sizeof(Shared)))) return 0;
    if (!(job->qkv = malloc(2 * (size_t)job->longest * row))) return 0;
    for (int at = 0; at < job->num_parts; at++) {
        if (!(job->shared[at].is_taken = calloc(2 * num_steps, sizeof(atomic_int)))) return 0;
        job->shared[at].is_finished = job->shared[at].is_taken + num_steps;
    }
    return 1;
}

#endif

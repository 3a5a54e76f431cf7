/* The threads that read the sentence encoder's jobs; the module encoder_core calls it.
 *
 * Whoever is free takes a job's next part: a thread of the pool, and the caller that waits for a text. So all cores are
 * busy to the end, whatever else the caller does meanwhile. No thread of the pool touches Python.
 */
#ifndef HTFI_ENCODER_POOL_H
#define HTFI_ENCODER_POOL_H

#include <pthread.h>
#include <signal.h>

#include "encoder_jobs.h"

enum { FEW_PARTS = 3, MAX_THREADS = 64 };
enum { SPIN_NS = 100000, ROUSED_SPIN_NS = 600000 }; /* a thread without work waits so long before it sleeps */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, change; /* a job was added; a part was done, or a helper left */
    Job *first;
    int num_threads, num_sleeping;
    unsigned generation;    /* of processes: a fork has the jobs and none of the threads */
    atomic_int num_waiting; /* callers that sleep until `change` */
    atomic_int num_urgent;  /* jobs that are not early and of which nobody has taken the last part */
    atomic_uint num_calls;  /* of `rouse` and of jobs added */
    atomic_int is_roused;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void announce_change(void)
{
    if (!atomic_load(&pool.num_waiting)) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.change);
    pthread_mutex_unlock(&pool.lock);
}

static void is_urgent_no_longer(Job *job)
{
    if (atomic_exchange(&job->is_urgent, 0)) atomic_fetch_sub(&pool.num_urgent, 1);
}

/* The next part that nobody has taken; null where all are. */
static Part *take_part(Job *job)
{
    if (atomic_load(&job->next) >= job->num_parts) return NULL;
    const int at = atomic_fetch_add(&job->next, 1);
    if (at + 1 >= job->num_parts) is_urgent_no_longer(job);
    return at < job->num_parts ? job->parts + at : NULL;
}

/* The job that a thread of the pool should help with; under the lock. Early ones are last in the list. */
static Job *job_to_help(void)
{
    Job *job = pool.first;
    while (job && (job->num_helpers >= job->max_helpers || is_over(job))) job = job->after;
    return job;
}

static void help(Job *job, const Scratch *s)
{
    if (job->shared) return follow(job, s);
    Part *part;
    while ((!job->is_early || !atomic_load(&pool.num_urgent)) && (part = take_part(job))) {
        read_part(job, part, s);
        announce_change();
    }
}

/* Wait for work without the lock, for as long as a thread that is awake should. */
static void spin(unsigned num_calls)
{
    const int64_t since = now_ns();
    for (long turn = 0; atomic_load(&pool.num_calls) == num_calls &&
                        now_ns() - since < (atomic_load(&pool.is_roused) ? ROUSED_SPIN_NS : SPIN_NS); turn++)
        pause_briefly(turn);
}

static void *work(void *unused)
{
    Scratch *s = NULL;
    Model of = {0}; /* whose sizes `s` has, with `rows` */
    int rows = 0;
    unsigned num_calls = atomic_load(&pool.num_calls) - 1;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        Job *job = job_to_help();
        if (!job) {
            const unsigned now = atomic_load(&pool.num_calls);
            if (now != num_calls) { /* there was work, or there will be soon */
                num_calls = now;
                pthread_mutex_unlock(&pool.lock);
                spin(now);
                pthread_mutex_lock(&pool.lock);
                continue;
            }
            atomic_store(&pool.is_roused, 0);
            pool.num_sleeping++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.num_sleeping--;
            continue;
        }
        job->num_helpers++;
        pthread_mutex_unlock(&pool.lock);
        const Model *m = job->model;
        if (!s || of.hidden != m->hidden || of.inner != m->inner || of.head_dim != m->head_dim || rows < job->longest) {
            free(s);
            of = *m, rows = job->longest;
            s = new_scratch(m, rows);
        }
        if (s) help(job, s);
        num_calls = atomic_load(&pool.num_calls) - 1;
        pthread_mutex_lock(&pool.lock);
        if (!s) job->max_helpers = 0;
        if (--job->num_helpers == 0) pthread_cond_broadcast(&pool.change);
    }
    return unused;
}

/* After a fork there are jobs, and no threads. */
static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.change, NULL);
    pool.first = NULL;
    pool.num_threads = pool.num_sleeping = 0;
    pool.generation++;
    atomic_store(&pool.num_waiting, 0);
    atomic_store(&pool.num_urgent, 0);
}

/* So many threads, or as many as can be started; under the lock. Signals are left to the threads of Python. */
static void start_threads(int num)
{
    static int is_registered;
    if (!is_registered) is_registered = pthread_atfork(NULL, NULL, forget_threads) == 0;
    sigset_t all, before;
    pthread_attr_t detached;
    if (pool.num_threads >= num || pthread_attr_init(&detached)) return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    while (pool.num_threads < num && pthread_create(&thread, &detached, work, NULL) == 0) pool.num_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

/* Wake a thread for work that will come soon: to wake takes longer than to read a headline. */
static void rouse(int num_threads)
{
    pthread_mutex_lock(&pool.lock);
    start_threads(num_threads - 1);
    atomic_store(&pool.is_roused, 1);
    atomic_fetch_add(&pool.num_calls, 1);
    if (pool.num_sleeping) pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

/* Let the pool's threads have a job. */
static void list_job(Job *job)
{
    pthread_mutex_lock(&pool.lock);
    start_threads(job->max_helpers);
    Job **place = &pool.first;
    while (*place && (job->is_early || !(*place)->is_early)) place = &(*place)->after;
    job->after = *place, *place = job;
    job->is_listed = 1;
    job->generation = pool.generation;
    atomic_store(&job->is_urgent, !job->is_early);
    if (!job->is_early) atomic_fetch_add(&pool.num_urgent, 1);
    atomic_fetch_add(&pool.num_calls, 1);
    if (pool.num_sleeping) pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

/* Take a job from the pool's list; under the lock. */
static void unlist_job(Job *job)
{
    if (!job->is_listed) return;
    job->is_listed = 0;
    if (job->generation != pool.generation) return;
    Job **place = &pool.first;
    while (*place != job) place = &(*place)->after;
    *place = job->after;
    is_urgent_no_longer(job);
}

/* From now on somebody waits for an early job. */
static void make_urgent(Job *job)
{
    if (!job->is_early || !job->is_listed) return;
    pthread_mutex_lock(&pool.lock);
    unlist_job(job);
    pthread_mutex_unlock(&pool.lock);
    job->is_early = 0;
    list_job(job);
}

static void sleep_until_done(const Part *part)
{
    const int64_t since = now_ns();
    for (long turn = 0; !atomic_load(&part->is_done) && now_ns() - since < SPIN_NS; turn++) pause_briefly(turn);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.num_waiting, 1);
    while (!atomic_load(&part->is_done)) pthread_cond_wait(&pool.change, &pool.lock); /* after `num_waiting` is counted */
    atomic_fetch_sub(&pool.num_waiting, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* Have the first `num_texts` texts read; returns whether there was memory. */
static int finish_texts(Job *job, int num_texts)
{
    Scratch *s = NULL;
    if (job->generation != pool.generation && job->is_listed) { /* what was taken before a fork is read by nobody */
        job->num_helpers = job->is_listed = 0;
        atomic_store(&job->next, 0);
    }
    if (job->shared && !job->is_listed && !is_over(job)) list_job(job);
    for (int at = 0; at < job->num_parts && job->parts[at].first_text < num_texts; at++) {
        Part *part = job->parts + at;
        while (!atomic_load_explicit(&part->is_done, memory_order_acquire)) {
            make_urgent(job);
            if (!s && !(s = new_scratch(job->model, job->longest))) return 0;
            Part *mine = take_part(job);
            if (!mine) {
                sleep_until_done(part);
                break;
            }
            if (job->shared)
                lead(job, (int)(mine - job->parts), s);
            else
                read_part(job, mine, s);
        }
    }
    free(s);
    return 1;
}

static void free_job(Job *job)
{
    if (!job) return;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&job->next, job->num_parts);
    unlist_job(job);
    while (job->num_helpers && job->generation == pool.generation) pthread_cond_wait(&pool.change, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    for (int at = 0; job->shared && at < job->num_parts; at++) free(job->shared[at].is_taken);
    free(job->shared);
    free(job->qkv);
    free(job->parts);
    free(job);
}

enum Wait { AT_ONCE, SOON, LATER }; /* when somebody will wait for a job: with nothing before, after others, much later */

/* A job on up to `num_threads` threads, the caller's among them. Null without memory. */
static Job *new_job(const Model *model, const Texts *of, int num_threads, enum Wait wait)
{
    Job *job = calloc(1, sizeof(Job));
    if (!job) return NULL;
    job->model = model, job->of = *of, job->is_early = wait == LATER;
    job->max_helpers = num_threads - 1;
    int is_whole = divide(job);
    const int is_shared = wait == AT_ONCE && job->max_helpers > 0 && job->num_parts > 0 && job->num_parts <= FEW_PARTS;
    if (is_whole && is_shared) {
        is_whole = share_parts(job);
        job->max_helpers = 1;
    }
    if (!is_whole) return free_job(job), NULL;
    if (job->max_helpers > 0 && job->num_parts > 0 && !is_shared) list_job(job); /* a shared one when somebody waits */
    return job;
}

#endif

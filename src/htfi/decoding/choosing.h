/* The choice of a token among the admitted: argmax of logits over temperature plus the shared noise.
 *
 * It follows noise.py and sampling.py operation by operation. The choice that outputs rest on is compiled
 * without fused multiply-add and takes no sum in another order, so that its tokens are theirs on any machine; a draft's
 * is compiled with its network.
 */
#ifndef HTFI_CHOOSING_H
#define HTFI_CHOOSING_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../domain/portable_math.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#ifndef HTFI_X86
#define HTFI_X86 1
#endif
#endif
#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

enum { BITS = 52, KEPT_BITS = 6, CUT = 52 - KEPT_BITS, FIRST_BIN = 1023 << KEPT_BITS };
enum { MOST_BINS = (BITS + 2) << KEPT_BITS, EIGHT = 8 };

static double low_table[MOST_BINS], high_table[MOST_BINS]; /* of noise.py: what bounds the noise of each bin */
static Py_ssize_t num_bins = 0;

INLINE uint64_t hash_of(uint64_t key, uint64_t counter)
{
    uint64_t x = key + counter; /* SplitMix64 */
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    x ^= x >> 31;
    return x >> (64 - BITS);
}

INLINE int64_t bin_of(uint64_t bits)
{
    union { double number; int64_t bits; } hash = {(double)(int64_t)bits + 1.0};
    return (hash.bits >> CUT) - FIRST_BIN;
}

static double gumbel_of(uint64_t bits)
{
    return -exact_log(-exact_log(1.0 - ((double)(int64_t)bits + 0.5) * 0x1p-52));
}

typedef struct {
    const float *logits; /* of one row [V] */
    const int64_t *ids;
    const uint64_t *counters;
    Py_ssize_t num_ids;
    double temperature;
    uint64_t key;
    double *scaled, *bounds; /* scratch [C] */
    uint32_t *bins;          /* scratch [C] */
} Row;

/* Whether ids rise, from 0 on and below `size`. */
INLINE int ids_fit(const int64_t *restrict ids, Py_ssize_t n, Py_ssize_t size)
{
    int64_t num_falling = 0;
    for (Py_ssize_t i = 1; i < n; i++) num_falling += ids[i] <= ids[i - 1];
    return !num_falling && ids[0] >= 0 && ids[n - 1] < size;
}

/* Scores of the admitted tokens over temperature, and how many are NaN. */
INLINE int64_t scale(const Row *row)
{
    const Py_ssize_t n = row->num_ids;
    const float *restrict logits = row->logits;
    const int64_t *restrict ids = row->ids;
    double *restrict scaled = row->scaled;
    const double temperature = row->temperature;
    int64_t num_broken = 0;
    if (ids[n - 1] - ids[0] == n - 1) /* rising without a gap: no gather */
        for (Py_ssize_t i = 0; i < n; i++) scaled[i] = (double)logits[ids[0] + i];
    else
        for (Py_ssize_t i = 0; i < n; i++) scaled[i] = (double)logits[ids[i]];
    if (temperature != 0.0 && temperature != 1.0)
        for (Py_ssize_t i = 0; i < n; i++) scaled[i] /= temperature;
    for (Py_ssize_t i = 0; i < n; i++) num_broken += scaled[i] != scaled[i];
    return num_broken;
}

typedef double Doubles __attribute__((vector_size(8 * EIGHT)));
typedef int64_t Flags __attribute__((vector_size(8 * EIGHT)));

/* The greatest of numbers, none of which is NaN, or the least finite number where it is less; said in vectors since compilers will not reorder it themselves. */
INLINE double greatest(const double *numbers, Py_ssize_t n)
{
    double lanes[EIGHT], most = -DBL_MAX;
    Doubles best = {0}, next;
    best += -DBL_MAX;
    Py_ssize_t i = 0;
    for (; i + EIGHT <= n; i += EIGHT) {
        memcpy(&next, numbers + i, sizeof next);
        const Flags is_more = next > best;
        best = (Doubles)(((Flags)next & is_more) | ((Flags)best & ~is_more));
    }
    memcpy(lanes, &best, sizeof lanes);
    for (int lane = 0; lane < EIGHT; lane++) most = lanes[lane] > most ? lanes[lane] : most;
    for (; i < n; i++) most = numbers[i] > most ? numbers[i] : most;
    return most;
}

/* The first place from `from` on whose number is at least `floor`; n where there is none. */
INLINE Py_ssize_t next_above(const double *numbers, Py_ssize_t from, Py_ssize_t n, double floor)
{
    for (; from < n && from % EIGHT; from++)
        if (numbers[from] >= floor) return from;
    for (; from + EIGHT <= n; from += EIGHT) {
        int64_t num_above = 0;
        for (int lane = 0; lane < EIGHT; lane++) num_above += numbers[from + lane] >= floor;
        if (num_above) break;
    }
    for (; from < n; from++)
        if (numbers[from] >= floor) return from;
    return n;
}

/* The likeliest; -1 where it is not finite. */
INLINE int64_t likeliest(const Row *row)
{
    if (scale(row)) return -1;
    const double most = greatest(row->scaled, row->num_ids);
    const Py_ssize_t place = next_above(row->scaled, 0, row->num_ids, most);
    return isfinite(most) && place < row->num_ids ? row->ids[place] : -1;
}

/* The greatest score with its noise: bounds leave a few tokens, mostly one, and those alone get the exact noise. */
INLINE int64_t drawn(const Row *row)
{
    const Py_ssize_t n = row->num_ids;
    const uint64_t *restrict counters = row->counters;
    const double *restrict scaled = row->scaled;
    double *restrict bounds = row->bounds;
    uint32_t *restrict bins = row->bins;
    const uint64_t key = row->key;
    if (scale(row)) return -1;
    for (Py_ssize_t i = 0; i < n; i++) bins[i] = (uint32_t)bin_of(hash_of(key, counters[i]));
    for (Py_ssize_t i = 0; i < n; i++) bounds[i] = scaled[i] + low_table[bins[i]];
    const double floor = greatest(bounds, n); /* the best score is at least this */
    for (Py_ssize_t i = 0; i < n; i++) bounds[i] = scaled[i] + high_table[bins[i]];
    Py_ssize_t best = next_above(bounds, 0, n, floor);
    if (!isfinite(floor) || best == n) return -1;
    Py_ssize_t i = next_above(bounds, best + 1, n, floor);
    if (i == n) return row->ids[best];
    double best_score = scaled[best] + gumbel_of(hash_of(key, counters[best]));
    for (; i < n; i = next_above(bounds, i + 1, n, floor)) {
        const double score = scaled[i] + gumbel_of(hash_of(key, counters[i]));
        if (score > best_score) best = i, best_score = score;
    }
    return row->ids[best];
}

/* Tokens of all rows; 0 where the ids do not fit. */
INLINE int choose_all(Row row, Py_ssize_t size, const char *logits, Py_ssize_t stride, const uint64_t *keys,
                      int64_t *tokens, Py_ssize_t num_rows)
{
    if (!ids_fit(row.ids, row.num_ids, size)) return 0;
    for (Py_ssize_t n = 0; n < num_rows; n++) {
        row.logits = (const float *)(logits + n * stride);
        row.key = keys[n];
        tokens[n] = row.temperature == 0.0 ? likeliest(&row) : drawn(&row);
    }
    return 1;
}

typedef int (*ChooseAll)(Row, Py_ssize_t, const char *, Py_ssize_t, const uint64_t *, int64_t *, Py_ssize_t);
#define CHOOSE_ALL(name) \
    static int name(Row row, Py_ssize_t size, const char *logits, Py_ssize_t stride, const uint64_t *keys, \
                    int64_t *tokens, Py_ssize_t num_rows) \
    { \
        return choose_all(row, size, logits, stride, keys, tokens, num_rows); \
    }
CHOOSE_ALL(choose_default)
#ifdef HTFI_X86
__attribute__((target("avx2"))) CHOOSE_ALL(choose_avx2)
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,prefer-vector-width=512"))) CHOOSE_ALL(choose_avx512)
#endif
static ChooseAll choose_here = choose_default;

static void use_this_processor(void)
{
#ifdef HTFI_X86
    if (__builtin_cpu_supports("avx2")) choose_here = choose_avx2;
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        choose_here = choose_avx512;
#endif
}

static PyObject *use_bounds(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer low, high;
    if (!PyArg_ParseTuple(args, "y*y*", &low, &high)) return NULL;
    const int is_fit = low.len == high.len && low.len <= (Py_ssize_t)sizeof low_table;
    if (is_fit) {
        memcpy(low_table, low.buf, (size_t)low.len);
        memcpy(high_table, high.buf, (size_t)high.len);
        num_bins = low.len / (Py_ssize_t)sizeof(double);
    }
    PyBuffer_Release(&low);
    PyBuffer_Release(&high);
    if (!is_fit) return PyErr_Format(PyExc_ValueError, "tables of bounds have at most %d bins", MOST_BINS);
    Py_RETURN_NONE;
}

#endif

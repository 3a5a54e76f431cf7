/* Weights of experts and the mix of their quantiles for the rows of an instant, which the module fusion calls: its
   operations, in its order, with its bits. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../domain/portable_math.h"

#define MIN_LOSS 1e-6
#define MIN_SUM 1e-300
#define WEIGHT_UNITS 1e6
#define TICKS_PER_UNIT 1e10
#define MAX_LOG_RETURN 56.0

enum { MAX_EXPERTS = 64, MAX_LEVELS = 128, MAX_ZONES = 8, MAX_CELLS = MAX_EXPERTS * MAX_ZONES };

enum { REGRET, SQUARE, LARGEST, PRIOR, INDEX, GROUPS, REGIMES, EXPERTS, CALIBRATION, SHARES, PACES, WEIGHTS, FUSED, NUM_ARRAYS };

static const struct {
    int ndim;
    const char *kinds;
} wanted[NUM_ARRAYS] = {
    [REGRET] = {5, "d"},   [SQUARE] = {5, "d"},  [LARGEST] = {5, "d"}, [PRIOR] = {5, "d"},
    [INDEX] = {1, "lq"},   [GROUPS] = {1, "lq"}, [REGIMES] = {1, "lq"}, [EXPERTS] = {4, "d"},
    [CALIBRATION] = {2, "d"}, [SHARES] = {2, "d"}, [PACES] = {1, "d"}, [WEIGHTS] = {4, "d"}, [FUSED] = {3, "d"},
};

typedef struct {
    Py_ssize_t awake, regimes, horizons, experts, zones, levels, median;
    double log_k;
} Sizes;

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GNUC__)
#define HTFI_X86
#endif

INLINE double greater(double a, double b) { return a > b ? a : b; }

INLINE double rate(double largest, double square, double pace, double log_k)
{
    const double first = 0.5 / greater(largest, MIN_LOSS), second = sqrt(log_k / greater(square, MIN_LOSS));
    return pace * (first < second ? first : second);
}

/* The weights [R, Z] of one horizon's R experts that are ready, `ready`: those for all times and those of the regime, times
   the prior, in whole units. An expert that is not ready has none. */
INLINE void weigh(const double *regret[2], const double *square[2], const double *largest[2], const double *prior,
                  const Py_ssize_t *ready, Py_ssize_t num, double pace, Sizes sizes, double *own)
{
    const Py_ssize_t zones = sizes.zones, size = num * zones;
    double rates[2 * MAX_CELLS], scores[2 * MAX_CELLS], priors[MAX_CELLS];
    for (Py_ssize_t k = 0; k < num; k++) {
        for (Py_ssize_t z = 0; z < zones; z++) {
            const Py_ssize_t from = ready[k] * zones + z, cell = k * zones + z;
            for (int a = 0; a < 2; a++) {
                rates[a * size + cell] = largest[a][from], scores[a * size + cell] = square[a][from];
            }
            priors[cell] = prior[from];
        }
    }
    for (Py_ssize_t cell = 0; cell < 2 * size; cell++) rates[cell] = rate(rates[cell], scores[cell], pace, sizes.log_k);
    for (int a = 0; a < 2; a++)
        for (Py_ssize_t k = 0; k < num; k++)
            for (Py_ssize_t z = 0; z < zones; z++)
                scores[a * size + k * zones + z] = rates[a * size + k * zones + z] * regret[a][ready[k] * zones + z];
    for (Py_ssize_t z = 0; z < zones; z++) {
        double best = -INFINITY;
        for (Py_ssize_t cell = z; cell < 2 * size; cell += zones) best = greater(scores[cell], best);
        for (Py_ssize_t cell = z; cell < 2 * size; cell += zones) scores[cell] -= best;
    }
    exact_exps(scores, 2 * size);
    for (Py_ssize_t cell = 0; cell < size; cell++)
        own[cell] = (rates[cell] * scores[cell] + rates[size + cell] * scores[size + cell]) * priors[cell];
    double sums[MAX_ZONES];
    for (Py_ssize_t z = 0; z < zones; z++) {
        double sum = 0.0;
        for (Py_ssize_t cell = z; cell < size; cell += zones) sum += own[cell];
        sums[z] = greater(sum, MIN_SUM);
    }
    for (Py_ssize_t k = 0; k < num; k++)
        for (Py_ssize_t z = 0; z < zones; z++) own[k * zones + z] /= sums[z];
    for (Py_ssize_t z = 0; z < zones; z++) {
        double total = 0.0, units = 0.0;
        Py_ssize_t first = z;
        for (Py_ssize_t cell = z; cell < size; cell += zones) {
            total += own[cell];
            own[cell] = nearest(own[cell] * WEIGHT_UNITS);
            units += own[cell];
            if (own[cell] > own[first]) first = cell;
        }
        own[first] += total > 0.0 ? WEIGHT_UNITS - units : 0.0;
    }
    for (Py_ssize_t cell = 0; cell < size; cell++) own[cell] /= WEIGHT_UNITS;
}

/* The mix [Q] of the quantiles of one horizon's R experts that are ready, `step` apart, with weights [R, Z]. */
INLINE void mix(const double *experts, Py_ssize_t step, const Py_ssize_t *ready, Py_ssize_t num_ready,
                const double *weights, const double *shares, double calibration, Sizes sizes, double *fused)
{
    const Py_ssize_t num = sizes.levels;
    double total[MAX_LEVELS] = {0.0}, at[MAX_LEVELS];
    for (Py_ssize_t k = 0; k < num_ready; k++) {
        for (Py_ssize_t q = 0; q < num; q++) at[q] = 0.0;
        for (Py_ssize_t z = 0; z < sizes.zones; z++) {
            const double weight = weights[k * sizes.zones + z];
            for (Py_ssize_t q = 0; q < num; q++) at[q] += weight * shares[z * num + q];
        }
        for (Py_ssize_t q = 0; q < num; q++) total[q] += at[q] * experts[ready[k] * step + q];
    }
    for (Py_ssize_t q = 1; q < num; q++) {
        const double value = total[q];
        Py_ssize_t place = q;
        for (; place && total[place - 1] > value; place--) total[place] = total[place - 1];
        total[place] = value;
    }
    const double middle = total[sizes.median];
    for (Py_ssize_t q = 0; q < num; q++) {
        double value = middle + calibration * (total[q] - middle);
        value = value < -MAX_LOG_RETURN ? -MAX_LOG_RETURN : value;
        value = value > MAX_LOG_RETURN ? MAX_LOG_RETURN : value;
        fused[q] = nearest(value * TICKS_PER_UNIT) / TICKS_PER_UNIT + 0.0;
    }
}

INLINE int are_finite(const double *values, Py_ssize_t num)
{
    int all = 1;
    for (Py_ssize_t q = 0; q < num; q++) all &= values[q] - values[q] == 0.0;
    return all;
}

INLINE void fuse_row(const Py_buffer *views, Py_ssize_t row, Sizes sizes)
{
    const Py_ssize_t zones = sizes.zones, table = sizes.experts * zones, width = sizes.horizons * sizes.levels;
    const Py_ssize_t index = ((const int64_t *)views[INDEX].buf)[row], group = ((const int64_t *)views[GROUPS].buf)[row];
    const Py_ssize_t regime = ((const int64_t *)views[REGIMES].buf)[row];
    const double *experts = (const double *)views[EXPERTS].buf + row * sizes.experts * width;
    double *weights = (double *)views[WEIGHTS].buf + row * sizes.horizons * table;
    double *fused = (double *)views[FUSED].buf + row * width;
    Py_ssize_t ready[MAX_EXPERTS], num = 0;
    for (Py_ssize_t k = 0; k < sizes.experts; k++) {
        if (isfinite(experts[k * width]) && are_finite(experts + k * width, width)) ready[num++] = k;
    }
    if (num < sizes.experts) memset(weights, 0, (size_t)(sizes.horizons * table) * sizeof(double));
    if (!num) {
        for (Py_ssize_t q = 0; q < width; q++) fused[q] = NAN;
        return;
    }
    for (Py_ssize_t h = 0; h < sizes.horizons; h++) {
        const double *learnt[3][2];
        double own[MAX_CELLS];
        for (int what = 0; what < 3; what++)
            for (int a = 0; a < 2; a++)
                learnt[what][a] = (const double *)views[REGRET + what].buf +
                                  ((index * sizes.awake + (a ? 1 + regime : 0)) * sizes.horizons + h) * table;
        const double *prior = (const double *)views[PRIOR].buf + ((group * sizes.regimes + regime) * sizes.horizons + h) * table;
        weigh(learnt[REGRET], learnt[SQUARE], learnt[LARGEST], prior, ready, num, ((const double *)views[PACES].buf)[h],
              sizes, own);
        for (Py_ssize_t k = 0; k < num; k++)
            for (Py_ssize_t z = 0; z < zones; z++)
                weights[(ready[k] * sizes.horizons + h) * zones + z] = own[k * zones + z];
        mix(experts + h * sizes.levels, width, ready, num, own, views[SHARES].buf,
            ((const double *)views[CALIBRATION].buf)[row * sizes.horizons + h], sizes, fused + h * sizes.levels);
    }
}

typedef void (*FuseRows)(const Py_buffer *, Sizes);
#define FUSE_ROWS(name) \
    static void name(const Py_buffer *views, Sizes sizes) \
    { \
        for (Py_ssize_t row = 0; row < views[INDEX].shape[0]; row++) fuse_row(views, row, sizes); \
    }
FUSE_ROWS(fuse_default)
#ifdef HTFI_X86
__attribute__((target("avx2"))) FUSE_ROWS(fuse_avx2) /* the same operations, four at once, none of them fused */
#endif
static FuseRows fuse_here = fuse_default;

static int has_shape(const Py_buffer *view, const Py_ssize_t *shape)
{
    for (int axis = 0; axis < view->ndim; axis++)
        if (view->shape[axis] != shape[axis]) return 0;
    return 1;
}

/* Whether the arrays are such as fuse asks for, and their rows those of the tables; the caller uses numpy for others. */
static int are_fit(const Py_buffer *views, Sizes *sizes)
{
    for (int place = 0; place < NUM_ARRAYS; place++) {
        const Py_buffer *view = views + place;
        if (!view->format || !strchr(wanted[place].kinds, *view->format) || view->format[1] || view->itemsize != 8 ||
            view->ndim != wanted[place].ndim)
            return 0;
    }
    const Py_ssize_t *learnt = views[REGRET].shape, *prior = views[PRIOR].shape, *experts = views[EXPERTS].shape;
    const Py_ssize_t num = experts[0], k = experts[1], h = experts[2], q = experts[3], zones = learnt[4];
    sizes->awake = learnt[1], sizes->regimes = prior[1], sizes->horizons = h, sizes->experts = k;
    sizes->zones = zones, sizes->levels = q;
    const Py_ssize_t tables[5] = {learnt[0], prior[1] + 1, h, k, zones}, priors[5] = {prior[0], prior[1], h, k, zones};
    const Py_ssize_t rows[1] = {num}, stretches[2] = {num, h}, hats[2] = {zones, q};
    const Py_ssize_t paces[1] = {h};
    const Py_ssize_t weights[4] = {num, k, h, zones}, fused[3] = {num, h, q};
    if (k > MAX_EXPERTS || q > MAX_LEVELS || zones > MAX_ZONES || sizes->median < 0 || sizes->median >= q ||
        !has_shape(views + REGRET, tables) || !has_shape(views + SQUARE, tables) || !has_shape(views + LARGEST, tables) ||
        !has_shape(views + PRIOR, priors) || !has_shape(views + INDEX, rows) || !has_shape(views + GROUPS, rows) ||
        !has_shape(views + REGIMES, rows) || !has_shape(views + CALIBRATION, stretches) ||
        !has_shape(views + SHARES, hats) || !has_shape(views + PACES, paces) || !has_shape(views + WEIGHTS, weights) || !has_shape(views + FUSED, fused))
        return 0;
    for (Py_ssize_t row = 0; row < num; row++) {
        const int64_t index = ((const int64_t *)views[INDEX].buf)[row], group = ((const int64_t *)views[GROUPS].buf)[row];
        const int64_t regime = ((const int64_t *)views[REGIMES].buf)[row];
        if (index < 0 || index >= learnt[0] || group < 0 || group >= prior[0] || regime < 0 || regime >= prior[1]) return 0;
    }
    return 1;
}

static PyObject *fuse(PyObject *module, PyObject *const *args, Py_ssize_t num_args)
{
    (void)module;
    if (num_args != NUM_ARRAYS + 2) return PyErr_Format(PyExc_TypeError, "fuse takes %d arguments", NUM_ARRAYS + 2);
    Sizes sizes = {.log_k = PyFloat_AsDouble(args[NUM_ARRAYS]), .median = PyLong_AsSsize_t(args[NUM_ARRAYS + 1])};
    if (PyErr_Occurred()) return NULL;
    Py_buffer views[NUM_ARRAYS];
    int num_views = 0;
    for (; num_views < NUM_ARRAYS; num_views++) {
        const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (num_views >= WEIGHTS ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(args[num_views], views + num_views, flags) < 0) {
            PyErr_Clear();
            break;
        }
    }
    const int is_fit = num_views == NUM_ARRAYS && are_fit(views, &sizes);
    if (is_fit)
        fuse_here(views, sizes);
    while (num_views) PyBuffer_Release(views + --num_views);
    return PyBool_FromLong(is_fit);
}

static PyMethodDef functions[] = {
    {"fuse", (PyCFunction)(void (*)(void))fuse, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fusion_core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_fusion_core(void)
{
#ifdef HTFI_X86
    if (__builtin_cpu_supports("avx2")) fuse_here = fuse_avx2;
#endif
    return PyModule_Create(&module);
}

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

static double greater(double a, double b) { return a > b ? a : b; }

static double rate(double largest, double square, double pace, double log_k)
{
    const double first = 0.5 / greater(largest, MIN_LOSS), second = sqrt(log_k / greater(square, MIN_LOSS));
    return pace * (first < second ? first : second);
}

/* The weights [K, Z] of one horizon, `step` apart from expert to expert: those for all times and those of the regime,
   times the prior, in whole units. */
static void weigh(const double *regret[2], const double *square[2], const double *largest[2], const double *prior,
                  const int *is_ready, double pace, Sizes sizes, double *weights, Py_ssize_t step)
{
    const Py_ssize_t num = sizes.experts, zones = sizes.zones, size = num * zones;
    double rates[2 * MAX_CELLS], scores[2 * MAX_CELLS], own[MAX_CELLS];
    for (int a = 0; a < 2; a++) {
        for (Py_ssize_t cell = 0; cell < size; cell++) {
            rates[a * size + cell] = rate(largest[a][cell], square[a][cell], pace, sizes.log_k);
            scores[a * size + cell] = rates[a * size + cell] * regret[a][cell];
        }
    }
    for (Py_ssize_t z = 0; z < zones; z++) {
        double best = -INFINITY;
        for (Py_ssize_t k = 0; k < num; k++)
            if (is_ready[k]) best = greater(greater(scores[k * zones + z], scores[size + k * zones + z]), best);
        for (Py_ssize_t cell = z; cell < 2 * size; cell += zones) scores[cell] -= best;
    }
    exact_exps(scores, 2 * size); /* of an expert that is not ready whatever it is: its weight is 0 */
    for (Py_ssize_t cell = 0; cell < size; cell++)
        own[cell] = (rates[cell] * scores[cell] + rates[size + cell] * scores[size + cell]) * prior[cell];
    for (Py_ssize_t z = 0; z < zones; z++) {
        double sum = 0.0, total = 0.0, units = 0.0;
        for (Py_ssize_t k = 0; k < num; k++) {
            if (!is_ready[k]) own[k * zones + z] = 0.0;
            sum = k ? sum + own[k * zones + z] : own[z];
        }
        Py_ssize_t first = 0;
        for (Py_ssize_t k = 0; k < num; k++) {
            const double weight = own[k * zones + z] / greater(sum, MIN_SUM);
            total += weight;
            own[k * zones + z] = nearest(weight * WEIGHT_UNITS);
            units += own[k * zones + z];
            if (own[k * zones + z] > own[first * zones + z]) first = k;
        }
        own[first * zones + z] += total > 0.0 ? WEIGHT_UNITS - units : 0.0;
        for (Py_ssize_t k = 0; k < num; k++) weights[k * step + z] = own[k * zones + z] / WEIGHT_UNITS;
    }
}

/* The mix [Q] of one horizon's quantiles, `step` apart from expert to expert like its weights. */
static void mix(const double *experts, Py_ssize_t step, const double *weights, Py_ssize_t weight_step,
                const double *shares, const int *is_ready, double calibration, Sizes sizes, double *fused)
{
    const Py_ssize_t num = sizes.levels;
    double total[MAX_LEVELS] = {0.0}, at[MAX_LEVELS];
    for (Py_ssize_t k = 0; k < sizes.experts; k++) {
        if (!is_ready[k]) continue; /* it would add nothing */
        for (Py_ssize_t q = 0; q < num; q++) at[q] = 0.0;
        for (Py_ssize_t z = 0; z < sizes.zones; z++) {
            const double weight = weights[k * weight_step + z];
            for (Py_ssize_t q = 0; q < num; q++) at[q] += weight * shares[z * num + q];
        }
        for (Py_ssize_t q = 0; q < num; q++) total[q] += at[q] * experts[k * step + q];
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

static void fuse_row(const Py_buffer *views, Py_ssize_t row, Sizes sizes)
{
    const Py_ssize_t table = sizes.experts * sizes.zones, width = sizes.horizons * sizes.levels;
    const Py_ssize_t index = ((const int64_t *)views[INDEX].buf)[row], group = ((const int64_t *)views[GROUPS].buf)[row];
    const Py_ssize_t regime = ((const int64_t *)views[REGIMES].buf)[row];
    const double *experts = (const double *)views[EXPERTS].buf + row * sizes.experts * width;
    double *weights = (double *)views[WEIGHTS].buf + row * sizes.horizons * table;
    double *fused = (double *)views[FUSED].buf + row * width;
    int is_ready[MAX_EXPERTS], is_any_ready = 0;
    for (Py_ssize_t k = 0; k < sizes.experts; k++) {
        is_ready[k] = 1;
        for (Py_ssize_t q = 0; q < width; q++) is_ready[k] &= isfinite(experts[k * width + q]) != 0;
        is_any_ready |= is_ready[k];
    }
    for (Py_ssize_t h = 0; h < sizes.horizons; h++) {
        const double *learnt[3][2];
        for (int what = 0; what < 3; what++)
            for (int a = 0; a < 2; a++)
                learnt[what][a] = (const double *)views[REGRET + what].buf +
                                  ((index * sizes.awake + (a ? 1 + regime : 0)) * sizes.horizons + h) * table;
        const double *prior = (const double *)views[PRIOR].buf + ((group * sizes.regimes + regime) * sizes.horizons + h) * table;
        const Py_ssize_t step = sizes.horizons * sizes.zones;
        weigh(learnt[REGRET], learnt[SQUARE], learnt[LARGEST], prior, is_ready,
              ((const double *)views[PACES].buf)[h], sizes, weights + h * sizes.zones, step);
        mix(experts + h * sizes.levels, width, weights + h * sizes.zones, step, views[SHARES].buf, is_ready,
            ((const double *)views[CALIBRATION].buf)[row * sizes.horizons + h], sizes, fused + h * sizes.levels);
        if (!is_any_ready)
            for (Py_ssize_t q = 0; q < sizes.levels; q++) fused[h * sizes.levels + q] = NAN;
    }
}

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
        for (Py_ssize_t row = 0; row < views[INDEX].shape[0]; row++) fuse_row(views, row, sizes);
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
    return PyModule_Create(&module);
}

/* The Python module of the choice of a token in C. The module choosing calls it. */
#include "choosing.h"

enum { LOGITS, IDS, COUNTERS, KEYS, TOKENS, NUM_ARRAYS };

static int is_of(const Py_buffer *view, const char *kinds, Py_ssize_t size, int ndim)
{
    return view->format && strchr(kinds, *view->format) && !view->format[1] && view->itemsize == size &&
           view->ndim == ndim;
}

/* Whether the arrays are such as choose asks for; the caller goes the long way with any other. */
static int are_fit(const Py_buffer *views)
{
    if (!is_of(views + LOGITS, "f", 4, 2) || !is_of(views + IDS, "lq", 8, 1) || !is_of(views + COUNTERS, "LQ", 8, 1) ||
        !is_of(views + KEYS, "LQ", 8, 1) || !is_of(views + TOKENS, "lq", 8, 1))
        return 0;
    const Py_ssize_t num_rows = views[LOGITS].shape[0], num_ids = views[IDS].shape[0];
    if (!num_ids || views[COUNTERS].shape[0] != num_ids || views[KEYS].shape[0] != num_rows ||
        views[TOKENS].shape[0] != num_rows || views[LOGITS].strides[1] != 4 || !num_bins)
        return 0;
    return 1;
}

/* 1 where tokens were chosen, 0 where the ids do not fit, -1 where there was no memory. */
static int choose_rows(const Py_buffer *views, double temperature)
{
    const Py_ssize_t num_ids = views[IDS].shape[0];
    double *scratch = malloc((size_t)num_ids * (2 * sizeof(double) + sizeof(uint32_t)));
    if (!scratch) return -1;
    const Row row = {.ids = views[IDS].buf, .counters = views[COUNTERS].buf, .num_ids = num_ids,
                     .temperature = temperature, .scaled = scratch, .bounds = scratch + num_ids,
                     .bins = (uint32_t *)(scratch + 2 * num_ids)};
    const int is_done = choose_here(row, views[LOGITS].shape[1], views[LOGITS].buf, views[LOGITS].strides[0],
                                    views[KEYS].buf, views[TOKENS].buf, views[LOGITS].shape[0]);
    free(scratch);
    return is_done;
}

static PyObject *choose(PyObject *module, PyObject *const *args, Py_ssize_t num_args)
{
    (void)module;
    if (num_args != NUM_ARRAYS + 1) return PyErr_Format(PyExc_TypeError, "choose takes %d arguments", NUM_ARRAYS + 1);
    const double temperature = PyFloat_AsDouble(args[NUM_ARRAYS]);
    if (temperature == -1.0 && PyErr_Occurred()) return NULL;
    Py_buffer views[NUM_ARRAYS];
    int num_views = 0;
    for (; num_views < NUM_ARRAYS; num_views++) {
        const int layout = num_views == LOGITS ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS;
        const int flags = PyBUF_FORMAT | layout | (num_views == TOKENS ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(args[num_views], views + num_views, flags) < 0) {
            PyErr_Clear();
            break;
        }
    }
    const int is_done = num_views == NUM_ARRAYS && are_fit(views) ? choose_rows(views, temperature) : 0;
    while (num_views) PyBuffer_Release(views + --num_views);
    if (is_done < 0) return PyErr_NoMemory();
    return PyBool_FromLong(is_done);
}

static PyMethodDef functions[] = {
    {"choose", (PyCFunction)(void (*)(void))choose, METH_FASTCALL, NULL},
    {"use_bounds", use_bounds, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "choosing_core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_choosing_core(void)
{
    use_this_processor();
    return PyModule_Create(&module);
}

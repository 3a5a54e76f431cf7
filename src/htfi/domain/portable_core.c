/* log and exp of whole arrays, which the module portable_math calls. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "portable_math.h"

static void log_of(const double *x, double *found, Py_ssize_t num)
{
    for (Py_ssize_t i = 0; i < num; i++) found[i] = exact_log(x[i]);
}

static void exp_of(const double *x, double *found, Py_ssize_t num)
{
    for (Py_ssize_t i = 0; i < num; i++) found[i] = exact_exp(x[i]);
}

static PyObject *fill(PyObject *const *args, Py_ssize_t num_args, void (*function)(const double *, double *, Py_ssize_t))
{
    if (num_args != 2) return PyErr_Format(PyExc_TypeError, "two arrays of float64, not %zd arguments", num_args);
    Py_buffer x, found;
    if (PyObject_GetBuffer(args[0], &x, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) return NULL;
    if (PyObject_GetBuffer(args[1], &found, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&x);
        return NULL;
    }
    const int is_fit = x.format && found.format && !strcmp(x.format, "d") && !strcmp(found.format, "d") &&
                       x.len == found.len;
    if (is_fit) function(x.buf, found.buf, x.len / (Py_ssize_t)sizeof(double));
    PyBuffer_Release(&found);
    PyBuffer_Release(&x);
    if (!is_fit) return PyErr_Format(PyExc_TypeError, "two arrays of float64 of one size");
    Py_RETURN_NONE;
}

static PyObject *fill_log(PyObject *module, PyObject *const *args, Py_ssize_t num_args)
{
    (void)module;
    return fill(args, num_args, log_of);
}

static PyObject *fill_exp(PyObject *module, PyObject *const *args, Py_ssize_t num_args)
{
    (void)module;
    return fill(args, num_args, exp_of);
}

static PyMethodDef functions[] = {
    {"fill_log", (PyCFunction)(void (*)(void))fill_log, METH_FASTCALL, NULL},
    {"fill_exp", (PyCFunction)(void (*)(void))fill_exp, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "portable_core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_portable_core(void)
{
    return PyModule_Create(&module);
}

/* The Python module of the sentence encoder in C: a Model made of arrays, and its passes. NativeSentenceEncoder alone
 * imports it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "encoder_pool.h"

typedef struct {
    PyObject_HEAD
    Model model;
    Py_buffer *views; /* of the arrays that the model's pointers lead into */
    Py_ssize_t num_views;
} Encoder;

/* The numbers of array `at`, of exactly `count` items of `size` bytes; null, with an error set, for any other. */
static const void *numbers(const Encoder *self, Py_ssize_t at, long count, long size)
{
    const Py_buffer *view = self->views + at;
    if (view->itemsize != size || view->len != count * size) {
        PyErr_Format(PyExc_ValueError, "array %zd: %ld numbers of %ld bytes are due", at, count, size);
        return NULL;
    }
    return view->buf;
}

static const float *floats(const Encoder *self, Py_ssize_t at, long count)
{
    return numbers(self, at, count, sizeof(float));
}

/* Three arrays from `at` on: weights [inputs, outputs], scales and bias [outputs]. */
static int read_product(Encoder *self, Product *product, Py_ssize_t at, int outputs, int inputs, int zero, float step)
{
    *product = (Product){.num_outputs = outputs, .num_inputs = inputs, .zero = zero};
    const int8_t *weights = numbers(self, at, (long)outputs * inputs, 1);
    const float *scales = floats(self, at + 1, outputs);
    product->bias = floats(self, at + 2, outputs);
    if (!weights || !scales || !product->bias) return 0;
    if (!lay_out(product, weights, step, scales, self->model.level)) return PyErr_NoMemory(), 0;
    return 1;
}

enum { OF_MODEL = 5, OF_LAYER = 19 };

static int read_layer(Encoder *self, Layer *layer, Py_ssize_t at)
{
    const int hidden = self->model.hidden, inner = self->model.inner;
    const float *steps = floats(self, at, 4); /* of the bytes before qkv, out, up and down */
    if (!steps) return 0;
    layer->attention.step = steps[0], layer->mixed_step = steps[1];
    layer->feed.step = steps[2], layer->share_step = steps[3];
    const float **rows[] = {&layer->attention.inverse, &layer->attention.gain, &layer->attention.shift,
                            &layer->feed.inverse,      &layer->feed.gain,      &layer->feed.shift};
    for (int i = 0; i < 6; i++)
        if (!(*rows[i] = floats(self, at + 1 + i, hidden))) return 0;
    return read_product(self, &layer->qkv, at + 7, 3 * hidden, hidden, 128, steps[0]) &&
           read_product(self, &layer->out, at + 10, hidden, hidden, 128, steps[1]) &&
           read_product(self, &layer->up, at + 13, inner, hidden, 128, steps[2]) &&
           read_product(self, &layer->down, at + 16, hidden, inner, 16, steps[3]);
}

static int read_model(Encoder *self, PyObject *arrays)
{
    Model *m = &self->model;
    if (m->num_layers < 1 || m->num_heads < 1 || m->head_dim % LANES || m->hidden != m->num_heads * m->head_dim ||
        m->hidden % GROUP || m->inner % GROUP || m->vocab < 1 || m->max_positions < 1)
        return PyErr_SetString(PyExc_ValueError, "the sizes are none that the encoder in C takes"), 0;
    const Py_ssize_t num = PyTuple_GET_SIZE(arrays);
    if (num != OF_MODEL + (Py_ssize_t)OF_LAYER * m->num_layers)
        return PyErr_SetString(PyExc_ValueError, "the arrays are not as many as the layers ask for"), 0;
    if (!(self->views = calloc((size_t)num, sizeof(Py_buffer)))) return PyErr_NoMemory(), 0;
    if (!(m->layers = calloc((size_t)m->num_layers, sizeof(Layer)))) return PyErr_NoMemory(), 0;
    for (; self->num_views < num; self->num_views++)
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(arrays, self->num_views), self->views + self->num_views,
                               PyBUF_C_CONTIGUOUS) < 0)
            return 0;
    if (!(m->words = numbers(self, 0, (long)m->vocab * m->hidden, 1)) ||
        !(m->word_scales = floats(self, 1, m->vocab)) ||
        !(m->places = floats(self, 2, (long)m->max_positions * m->hidden)) ||
        !(m->gain = floats(self, 3, m->hidden)) || !(m->shift = floats(self, 4, m->hidden)))
        return 0;
    for (int layer = 0; layer < m->num_layers; layer++)
        if (!read_layer(self, m->layers + layer, OF_MODEL + (Py_ssize_t)OF_LAYER * layer)) return 0;
    return 1;
}

static PyObject *encoder_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    Model of = {0};
    PyObject *arrays;
    int most_level;
    static char *names[] = {"sizes", "eps", "least", "arrays", "level", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "(iiiiiii)ffO!i", names, &of.num_layers, &of.num_heads, &of.head_dim,
                                     &of.hidden, &of.inner, &of.vocab, &of.max_positions, &of.eps, &of.least,
                                     &PyTuple_Type, &arrays, &most_level))
        return NULL;
    const int level = processor_level();
    of.level = most_level < level ? most_level : level;
    Encoder *self = (Encoder *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->model = of;
    if (!read_model(self, arrays)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void free_product(Product *product)
{
    free(product->weights);
    free(product->scales);
    free(product->start);
}

static void encoder_dealloc(Encoder *self)
{
    Model *m = &self->model;
    for (int layer = 0; m->layers && layer < m->num_layers; layer++) {
        free_product(&m->layers[layer].qkv);
        free_product(&m->layers[layer].out);
        free_product(&m->layers[layer].up);
        free_product(&m->layers[layer].down);
    }
    free(m->layers);
    while (self->num_views) PyBuffer_Release(self->views + --self->num_views);
    free(self->views);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

enum { IDS, LENGTHS, STATES, SUMS, NUM_ARRAYS };

/* Whether the arrays fit each other and nothing in them leads outside. */
static int read_texts(const Model *m, const Py_buffer *views, Texts *of)
{
    static const Py_ssize_t sizes[] = {sizeof(int64_t), sizeof(int32_t), sizeof(float), sizeof(float)};
    static const int ndims[] = {1, 1, 2, 2};
    for (int i = 0; i < NUM_ARRAYS; i++)
        if (views[i].itemsize != sizes[i] || views[i].ndim != ndims[i]) return 0;
    const Py_ssize_t tokens = views[IDS].shape[0], texts = views[LENGTHS].shape[0];
    if (views[STATES].shape[0] != tokens || views[STATES].shape[1] != m->hidden || views[SUMS].shape[0] != texts ||
        views[SUMS].shape[1] != m->hidden || texts > INT32_MAX || tokens > INT32_MAX)
        return 0;
    *of = (Texts){.ids = views[IDS].buf, .lengths = views[LENGTHS].buf, .num_texts = (int)texts,
                  .states = views[STATES].buf, .sums = views[SUMS].buf};
    Py_ssize_t sum = 0;
    for (Py_ssize_t i = 0; i < texts; i++) {
        if (of->lengths[i] < 1 || of->lengths[i] > m->max_positions) return 0;
        sum += of->lengths[i];
    }
    for (Py_ssize_t i = 0; i < tokens; i++)
        if (of->ids[i] < 0 || of->ids[i] >= m->vocab) return 0;
    return sum == tokens;
}

typedef struct {
    PyObject_HEAD
    PyObject *encoder;
    Py_buffer views[NUM_ARRAYS]; /* of what the job reads and writes */
    Job *job;
} JobObject;

static PyTypeObject job_type;

static void job_dealloc(JobObject *self)
{
    Py_BEGIN_ALLOW_THREADS
    free_job(self->job);
    Py_END_ALLOW_THREADS
    for (int i = 0; i < NUM_ARRAYS; i++)
        if (self->views[i].obj) PyBuffer_Release(self->views + i);
    Py_XDECREF(self->encoder);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* finish(num_texts): return when the first texts are read; other threads run meanwhile. */
static PyObject *job_finish(JobObject *self, PyObject *number)
{
    const long num_texts = PyLong_AsLong(number);
    if (num_texts == -1 && PyErr_Occurred()) return NULL;
    int there_was_memory;
    Py_BEGIN_ALLOW_THREADS
    there_was_memory = finish_texts(self->job, num_texts < INT32_MAX ? (int)num_texts : INT32_MAX);
    Py_END_ALLOW_THREADS
    if (!there_was_memory) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef job_methods[] = {{"finish", (PyCFunction)job_finish, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyTypeObject job_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "htfi.adapters.native.encoder_core.Job",
    .tp_basicsize = sizeof(JobObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)job_dealloc,
    .tp_methods = job_methods,
};

/* start(ids, lengths, states, sums, num_threads, wait): a job; None where the arrays do not fit. */
static PyObject *encoder_start(Encoder *self, PyObject *const *args, Py_ssize_t num_args)
{
    if (num_args != NUM_ARRAYS + 2) return PyErr_Format(PyExc_TypeError, "start takes %d arguments", NUM_ARRAYS + 2);
    const long num_threads = PyLong_AsLong(args[NUM_ARRAYS]), wait = PyLong_AsLong(args[NUM_ARRAYS + 1]);
    if (PyErr_Occurred()) return NULL;
    if (wait < AT_ONCE || wait > LATER) return PyErr_Format(PyExc_ValueError, "wait is %ld", wait);
    JobObject *made = (JobObject *)job_type.tp_alloc(&job_type, 0);
    if (!made) return NULL;
    made->encoder = Py_NewRef((PyObject *)self);
    Texts of;
    for (int i = 0; i < NUM_ARRAYS; i++) {
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (i < STATES ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(args[i], made->views + i, flags) < 0) return Py_DECREF(made), NULL;
    }
    if (!read_texts(&self->model, made->views, &of)) {
        Py_DECREF(made);
        Py_RETURN_NONE;
    }
    made->job = new_job(&self->model, &of, num_threads < 1 ? 1 : num_threads > MAX_THREADS ? MAX_THREADS : (int)num_threads,
                        (enum Wait)wait);
    if (!made->job) return Py_DECREF(made), PyErr_NoMemory();
    return (PyObject *)made;
}

/* multiply(num_tokens): the integer products alone, of zeros, as a benchmark's floor. */
static PyObject *encoder_multiply(Encoder *self, PyObject *number)
{
    const long num_tokens = PyLong_AsLong(number);
    if (num_tokens < 0 || num_tokens > INT32_MAX) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a number of tokens is due");
        return NULL;
    }
    if (!multiply_only(&self->model, (int)num_tokens)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *encoder_level(Encoder *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->model.level);
}

static PyMethodDef encoder_methods[] = {
    {"start", (PyCFunction)(void (*)(void))encoder_start, METH_FASTCALL, NULL},
    {"multiply", (PyCFunction)encoder_multiply, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef encoder_members[] = {{"level", (getter)encoder_level, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject encoder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "htfi.adapters.native.encoder_core.Encoder",
    .tp_basicsize = sizeof(Encoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = encoder_new,
    .tp_dealloc = (destructor)encoder_dealloc,
    .tp_methods = encoder_methods,
    .tp_getset = encoder_members,
};

static PyObject *best_level(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(processor_level());
}

/* rouse(num_threads): texts will come soon. */
static PyObject *rouse_threads(PyObject *module, PyObject *number)
{
    (void)module;
    const long num_threads = PyLong_AsLong(number);
    if (num_threads == -1 && PyErr_Occurred()) return NULL;
    if (num_threads > 1) rouse(num_threads > MAX_THREADS ? MAX_THREADS : (int)num_threads);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"best_level", best_level, METH_NOARGS, NULL},
    {"rouse", rouse_threads, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "encoder_core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_encoder_core(void)
{
    if (PyType_Ready(&encoder_type) < 0 || PyType_Ready(&job_type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Encoder", (PyObject *)&encoder_type) < 0) Py_CLEAR(made);
    return made;
}

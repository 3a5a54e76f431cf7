/* The Python module of the network in C: a Model made of arrays, and its passes. NativeNetwork alone imports it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "chain.h"

typedef struct {
    PyObject_HEAD
    Model model;
    PyObject *arrays; /* a tuple of bytes objects that the model's pointers lead into */
} Network;

/* The numbers of a bytes object of exactly `count` items of `size` bytes; null, with an error set, for any other. */
static const void *numbers(PyObject *object, long count, long size)
{
    if (!PyBytes_Check(object) || PyBytes_GET_SIZE(object) != count * size) {
        PyErr_Format(PyExc_ValueError, "an array of %ld numbers of %ld bytes is due", count, size);
        return NULL;
    }
    return PyBytes_AS_STRING(object);
}

static const float *floats(PyObject *object, long count) { return numbers(object, count, sizeof(float)); }

/* Three objects of `arrays` from `at` on: weights, scales, and bias or None. */
static int read_linear(Linear *linear, PyObject *arrays, Py_ssize_t at, long outputs, long inputs, int is_packed)
{
    linear->num_outputs = (int)outputs;
    linear->num_inputs = (int)inputs;
    const int8_t *weights = numbers(PyTuple_GET_ITEM(arrays, at), outputs * inputs, 1);
    if (!weights || !(linear->scales = floats(PyTuple_GET_ITEM(arrays, at + 1), outputs))) return 0;
    PyObject *bias = PyTuple_GET_ITEM(arrays, at + 2);
    if (bias != Py_None && !(linear->bias = floats(bias, outputs))) return 0;
    if (!lay_out(linear, weights, is_packed)) return PyErr_NoMemory(), 0;
    return 1;
}

static int read_layer(Model *m, Layer *layer, PyObject *arrays, Py_ssize_t at)
{
    const long heads = (long)m->num_heads * m->head_dim, kv = (long)m->num_kv_heads * m->head_dim;
    const float **gains[] = {&layer->in_norm, &layer->post_norm, &layer->q_norm, &layer->k_norm};
    const long sizes[] = {m->hidden, m->hidden, m->head_dim, m->head_dim};
    for (int i = 0; i < 4; i++) {
        PyObject *gain = PyTuple_GET_ITEM(arrays, at + i);
        if ((i < 2 || gain != Py_None) && !(*gains[i] = floats(gain, sizes[i]))) return 0;
    }
    return read_linear(&layer->qkv, arrays, at + 4, heads + 2 * kv, m->hidden, m->is_packed) &&
           read_linear(&layer->out, arrays, at + 7, m->hidden, heads, m->is_packed) &&
           read_linear(&layer->gate_up, arrays, at + 10, 2L * m->inner, m->hidden, m->is_packed) &&
           read_linear(&layer->down, arrays, at + 13, m->hidden, m->inner, m->is_packed);
}

enum { OF_MODEL = 7, OF_LAYER = 16 }; /* objects: embed, cosines, sines, norm, head's three; then each layer's */

static int read_model(Network *self)
{
    Model *m = &self->model;
    PyObject *arrays = self->arrays;
    if (PyTuple_GET_SIZE(arrays) != OF_MODEL + (Py_ssize_t)OF_LAYER * m->num_layers)
        return PyErr_SetString(PyExc_ValueError, "the arrays are not as many as the layers ask for"), 0;
    const long angles = (long)m->max_positions * (m->head_dim / 2);
    if (!(m->layers = calloc((size_t)m->num_layers, sizeof(Layer)))) return PyErr_NoMemory(), 0;
    if (!(m->embed = floats(PyTuple_GET_ITEM(arrays, 0), (long)m->vocab * m->hidden)) ||
        !(m->cosines = floats(PyTuple_GET_ITEM(arrays, 1), angles)) ||
        !(m->sines = floats(PyTuple_GET_ITEM(arrays, 2), angles)) ||
        !(m->norm = floats(PyTuple_GET_ITEM(arrays, 3), m->hidden)) ||
        !read_linear(&m->head, arrays, 4, m->vocab, m->hidden, m->is_packed))
        return 0;
    for (int layer = 0; layer < m->num_layers; layer++)
        if (!read_layer(m, m->layers + layer, arrays, OF_MODEL + (Py_ssize_t)OF_LAYER * layer)) return 0;
    return 1;
}

static PyObject *network_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    Model of = {0};
    PyObject *arrays;
    int most_level;
    static char *names[] = {"sizes", "eps", "arrays", "level", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "(iiiiiiii)fO!i", names, &of.num_layers, &of.num_heads,
                                     &of.num_kv_heads, &of.head_dim, &of.hidden, &of.inner, &of.vocab,
                                     &of.max_positions, &of.eps, &PyTuple_Type, &arrays, &most_level))
        return NULL;
    const int level = processor_level();
    of.level = most_level < level ? most_level : level;
    of.is_packed = of.level == 2;
    Network *self = (Network *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->model = of;
    self->arrays = Py_NewRef(arrays);
    if (!read_model(self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void network_dealloc(Network *self)
{
    Model *m = &self->model;
    for (int layer = 0; m->layers && layer < m->num_layers; layer++) {
        Layer *at = m->layers + layer;
        free(at->qkv.rows), free(at->out.rows), free(at->gate_up.rows), free(at->down.rows);
    }
    free(m->layers);
    free(m->head.rows);
    Py_XDECREF(self->arrays);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Whether a buffer holds numbers of `kind` ('f': float32, 'l': int64) and has these sizes. */
static int fits(const Py_buffer *view, char kind, int ndim, const Py_ssize_t *sizes)
{
    const char *format = view->format ? view->format : "B";
    const int right = kind == 'f' ? *format == 'f' : (*format == 'l' || *format == 'q') && view->itemsize == 8;
    if (!right || format[1] || view->ndim != ndim) return 0;
    for (int i = 0; i < ndim; i++)
        if (view->shape[i] != sizes[i]) return 0;
    return 1;
}

enum { NUM_ARRAYS = 9, NUM_READ = 6 }; /* buffers of a pass; the first of them are read only */

/* The pass that the buffers describe, where they fit each other and the model and nothing is out of range. */
static int read_pass(const Model *m, const Py_buffer *views, Pass *pass)
{
    if (views[0].ndim != 2 || views[3].ndim != 5 || !views[0].shape[0] || !views[0].shape[1]) return 0;
    const Py_ssize_t rows = views[0].shape[0], num_new = views[0].shape[1], past = views[3].shape[3];
    const Py_ssize_t ids[] = {rows, num_new}, mask[] = {rows, num_new, past + num_new};
    const Py_ssize_t kept[] = {m->num_layers, rows, m->num_kv_heads, past, m->head_dim};
    const Py_ssize_t made[] = {m->num_layers, rows, m->num_kv_heads, num_new, m->head_dim};
    const Py_ssize_t scored[] = {views[5].shape ? views[5].shape[0] : 0}, logits[] = {scored[0], m->vocab};
    const Py_ssize_t *sizes[NUM_ARRAYS] = {ids, ids, mask, kept, kept, scored, logits, made, made};
    static const int ndims[NUM_ARRAYS] = {2, 2, 3, 5, 5, 1, 2, 5, 5};
    for (int i = 0; i < NUM_ARRAYS; i++)
        if (!fits(views + i, i < 2 || i == 5 ? 'l' : 'f', ndims[i], sizes[i])) return 0;
    const long head = (long)past * m->head_dim, row = head * m->num_kv_heads;
    const long new_head = (long)num_new * m->head_dim, new_row = new_head * m->num_kv_heads;
    *pass = (Pass){.num_rows = (int)rows, .num_new = (int)num_new, .num_past = (int)past,
                   .ids = views[0].buf, .positions = views[1].buf, .mask = views[2].buf, .keys = views[3].buf,
                   .values = views[4].buf, .scored = views[5].buf, .num_scored = (int)scored[0],
                   .logits = views[6].buf, .new_keys = views[7].buf, .new_values = views[8].buf,
                   .layer_step = row * rows, .row_step = row, .head_step = head,
                   .new_layer_step = new_row * rows, .new_row_step = new_row, .new_head_step = new_head};
    for (Py_ssize_t i = 0; i < rows * num_new; i++)
        if (pass->ids[i] < 0 || pass->ids[i] >= m->vocab || pass->positions[i] < 0 ||
            pass->positions[i] >= m->max_positions)
            return 0;
    for (Py_ssize_t i = 0; i < scored[0]; i++)
        if (pass->scored[i] < (i ? pass->scored[i - 1] + 1 : 0) || pass->scored[i] >= rows * num_new) return 0;
    return 1;
}

static PyObject *network_forward(Network *self, PyObject *const *args, Py_ssize_t num_args)
{
    if (num_args != NUM_ARRAYS) return PyErr_Format(PyExc_TypeError, "forward takes %d arrays", NUM_ARRAYS);
    Py_buffer views[NUM_ARRAYS];
    int num_views = 0, there_was_memory = 1;
    Pass pass;
    for (; num_views < NUM_ARRAYS; num_views++) {
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (num_views < NUM_READ ? 0 : PyBUF_WRITABLE);
        if (PyObject_GetBuffer(args[num_views], views + num_views, flags) < 0) {
            PyErr_Clear(); /* the caller finds out what is wrong and says it */
            break;
        }
    }
    const int is_fit = num_views == NUM_ARRAYS && read_pass(&self->model, views, &pass);
    if (is_fit) {
        Py_BEGIN_ALLOW_THREADS
        there_was_memory = forward(&self->model, &pass);
        Py_END_ALLOW_THREADS
    }
    while (num_views) PyBuffer_Release(views + --num_views);
    if (!there_was_memory) return PyErr_NoMemory();
    return PyBool_FromLong(is_fit);
}

/* chain(keys, values, slot, length, unread, begins, tokens, nexts, counters, noise, out, state, num_chosen,
 * temperature): how many tokens were drafted and how many read; see NativeNetwork.chain. */
static PyObject *network_chain(Network *self, PyObject *args)
{
    static const int ndims[] = {5, 5, 1, 1, 1, 1, 1, 1, 2};
    enum { KEYS, VALUES, UNREAD, BEGINS, TOKENS, NEXTS, COUNTERS, NOISE, OUT, NUM };
    PyObject *given[NUM];
    Py_buffer views[NUM];
    Chain chain = {.model = &self->model};
    if (!PyArg_ParseTuple(args, "OOiiOOOOOOOiid", given, given + 1, &chain.slot, &chain.length, given + 2, given + 3,
                          given + 4, given + 5, given + 6, given + 7, given + 8, &chain.state, &chain.num_chosen,
                          &chain.temperature))
        return NULL;
    int num_views = 0, is_done = 0, is_fit = 1;
    for (; num_views < NUM; num_views++) {
        const int is_written = num_views == KEYS || num_views == VALUES || num_views == OUT;
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(given[num_views], views + num_views, flags) < 0) break;
        const Py_ssize_t size = num_views < UNREAD ? 4 : 8;
        is_fit &= views[num_views].ndim == ndims[num_views] && views[num_views].itemsize == size;
    }
    if (num_views == NUM && is_fit) {
        const Model *m = &self->model;
        const Py_ssize_t *sizes = views[KEYS].shape;
        chain.num_slots = (int)sizes[1], chain.capacity = (int)sizes[3];
        chain.keys = views[KEYS].buf, chain.values = views[VALUES].buf;
        chain.unread = views[UNREAD].buf, chain.num_unread = (int)views[UNREAD].shape[0];
        chain.begins = views[BEGINS].buf, chain.num_states = (int)views[BEGINS].shape[0] - 1;
        chain.tokens = views[TOKENS].buf, chain.nexts = views[NEXTS].buf, chain.counters = views[COUNTERS].buf;
        chain.num_tokens = (long)views[TOKENS].shape[0];
        is_fit = views[NEXTS].shape[0] == chain.num_tokens && views[COUNTERS].shape[0] == chain.num_tokens;
        chain.noise = views[NOISE].buf, chain.most = (int)views[NOISE].shape[0];
        chain.out = views[OUT].buf;
        is_fit = is_fit && chain.num_states > 0 && sizes[0] == m->num_layers && sizes[2] == m->num_kv_heads && sizes[4] == m->head_dim &&
                 views[VALUES].len == views[KEYS].len && views[OUT].shape[0] == 2 &&
                 views[OUT].shape[1] == chain.most && chain_fits(&chain);
        if (is_fit) {
            Py_BEGIN_ALLOW_THREADS
            is_done = draft_chain(&chain);
            Py_END_ALLOW_THREADS
        }
    }
    const int all_there = num_views == NUM;
    while (num_views) PyBuffer_Release(views + --num_views);
    if (!all_there) return NULL;
    if (!is_fit) return PyErr_SetString(PyExc_ValueError, "the chain's arrays do not fit each other"), NULL;
    if (!is_done) return PyErr_NoMemory();
    return Py_BuildValue("ii", chain.num_drafted, chain.num_read);
}

static PyObject *network_level(Network *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->model.level);
}

static PyMethodDef network_methods[] = {
    {"forward", (PyCFunction)(void (*)(void))network_forward, METH_FASTCALL, NULL},
    {"chain", (PyCFunction)network_chain, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef network_members[] = {{"level", (getter)network_level, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject network_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "htfi.adapters.native.core.Network",
    .tp_basicsize = sizeof(Network),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = network_new,
    .tp_dealloc = (destructor)network_dealloc,
    .tp_methods = network_methods,
    .tp_getset = network_members,
};

static PyMethodDef functions[] = {{"use_bounds", use_bounds, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_core(void)
{
    use_this_processor();
    if (PyType_Ready(&network_type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddObjectRef(made, "Network", (PyObject *)&network_type) < 0) Py_CLEAR(made);
    return made;
}

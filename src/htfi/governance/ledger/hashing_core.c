/* SHA-256 (FIPS 180-4) of many entries or pairs of hashes in one call, by the processor's own instructions for it.

   hashlib takes half a microsecond a call beside the hashing; a group of entries needs two calls for each. Imported by
   merkle.py. Where the processor has no such instructions the import fails, and hashlib does the same. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_BYTES = 64, HASH_BYTES = 32, LEAF_PREFIX = 0, NODE_PREFIX = 1 };

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t ROUND_CONSTANTS[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The state is kept as the instructions want it: words ABEF and CDGH. */
typedef struct {
    __m128i abef, cdgh;
} State;

WITH_SHA static State initial_state(void)
{
    return (State){_mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c),
                   _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19)};
}

WITH_SHA static State compress(State state, const uint8_t *data, size_t num_blocks)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    for (; num_blocks; num_blocks--, data += BLOCK_BYTES) {
        const State before = state;
        __m128i words[4];
        for (int part = 0; part < 4; part++)
            words[part] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + part), big_endian);
#pragma GCC unroll 16
        for (int turn = 0; turn < 16; turn++) { /* four rounds each */
            __m128i *const now = words + (turn & 3), *const next = words + ((turn + 1) & 3);
            __m128i *const last = words + ((turn + 3) & 3);
            const __m128i sum = _mm_add_epi32(*now, _mm_load_si128((const __m128i *)ROUND_CONSTANTS + turn));
            state.cdgh = _mm_sha256rnds2_epu32(state.cdgh, state.abef, sum);
            if (turn >= 3 && turn < 15)
                *next = _mm_sha256msg2_epu32(_mm_add_epi32(*next, _mm_alignr_epi8(*now, *last, 4)), *now);
            state.abef = _mm_sha256rnds2_epu32(state.abef, state.cdgh, _mm_shuffle_epi32(sum, 0x0e));
            if (turn >= 1 && turn < 13) *last = _mm_sha256msg1_epu32(*last, *now);
        }
        state.abef = _mm_add_epi32(state.abef, before.abef);
        state.cdgh = _mm_add_epi32(state.cdgh, before.cdgh);
    }
    return state;
}

WITH_SHA static void write_hash(State state, uint8_t *hash)
{
    const uint32_t words[8] = {
        (uint32_t)_mm_extract_epi32(state.abef, 3), (uint32_t)_mm_extract_epi32(state.abef, 2),
        (uint32_t)_mm_extract_epi32(state.cdgh, 3), (uint32_t)_mm_extract_epi32(state.cdgh, 2),
        (uint32_t)_mm_extract_epi32(state.abef, 1), (uint32_t)_mm_extract_epi32(state.abef, 0),
        (uint32_t)_mm_extract_epi32(state.cdgh, 1), (uint32_t)_mm_extract_epi32(state.cdgh, 0)};
    for (int at = 0; at < 8; at++) {
        const uint32_t word = __builtin_bswap32(words[at]);
        memcpy(hash + 4 * at, &word, sizeof word);
    }
}

/* SHA-256(prefix || content). */
static void hash_with_prefix(uint8_t prefix, const uint8_t *content, size_t num_bytes, uint8_t *hash)
{
    uint8_t block[2 * BLOCK_BYTES] = {prefix};
    State state = initial_state();
    size_t used = 1, taken = 0; /* bytes of `block`, bytes of `content` in blocks before it */
    if (num_bytes >= BLOCK_BYTES - 1) {
        memcpy(block + 1, content, BLOCK_BYTES - 1);
        state = compress(state, block, 1);
        const size_t num_whole = (num_bytes - (BLOCK_BYTES - 1)) / BLOCK_BYTES;
        state = compress(state, content + BLOCK_BYTES - 1, num_whole);
        taken = BLOCK_BYTES - 1 + num_whole * BLOCK_BYTES;
        used = 0;
    }
    memcpy(block + used, content + taken, num_bytes - taken);
    used += num_bytes - taken;
    const size_t end = used + 9 <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    memset(block + used, 0, end - used);
    block[used] = 0x80;
    const uint64_t num_bits = __builtin_bswap64(8 * ((uint64_t)num_bytes + 1));
    memcpy(block + end - sizeof num_bits, &num_bits, sizeof num_bits);
    write_hash(compress(state, block, end / BLOCK_BYTES), hash);
}

static int has_sha_instructions(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_SSSE3) || !(ecx & bit_SSE4_1)) return 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_SHA);
}
#else
static void hash_with_prefix(uint8_t prefix, const uint8_t *content, size_t num_bytes, uint8_t *hash)
{
    (void)prefix, (void)content, (void)num_bytes, (void)hash;
}

static int has_sha_instructions(void)
{
    return 0;
}
#endif

static int are_bytes(PyObject *values, Py_ssize_t num_bytes)
{
    if (!PyList_CheckExact(values) && !PyTuple_CheckExact(values)) return 0;
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(values); at++) {
        PyObject *const value = PySequence_Fast_GET_ITEM(values, at);
        if (!PyBytes_Check(value) || (num_bytes >= 0 && PyBytes_GET_SIZE(value) != num_bytes)) return 0;
    }
    return 1;
}

/* A list of hashes, each of `width` values put together behind the prefix. */
static PyObject *hashes(PyObject *values, uint8_t prefix, Py_ssize_t width)
{
    const Py_ssize_t num_hashes = PySequence_Fast_GET_SIZE(values) / width;
    PyObject *found = PyList_New(num_hashes);
    if (!found) return NULL;
    for (Py_ssize_t at = 0; at < num_hashes; at++) {
        PyObject *const hash = PyBytes_FromStringAndSize(NULL, HASH_BYTES);
        if (!hash) {
            Py_DECREF(found);
            return NULL;
        }
        PyList_SET_ITEM(found, at, hash);
        PyObject *const first = PySequence_Fast_GET_ITEM(values, at * width);
        const uint8_t *content = (const uint8_t *)PyBytes_AS_STRING(first);
        size_t num_bytes = (size_t)PyBytes_GET_SIZE(first);
        uint8_t pair[2 * HASH_BYTES];
        if (width == 2) {
            memcpy(pair, content, HASH_BYTES);
            memcpy(pair + HASH_BYTES, PyBytes_AS_STRING(PySequence_Fast_GET_ITEM(values, at * width + 1)), HASH_BYTES);
            content = pair;
            num_bytes = sizeof pair;
        }
        hash_with_prefix(prefix, content, num_bytes, (uint8_t *)PyBytes_AS_STRING(hash));
    }
    return found;
}

static PyObject *leaf_hashes(PyObject *module, PyObject *entries)
{
    (void)module;
    if (!are_bytes(entries, -1)) return PyErr_Format(PyExc_TypeError, "leaf_hashes takes a list or tuple of bytes");
    return hashes(entries, LEAF_PREFIX, 1);
}

static PyObject *node_hashes(PyObject *module, PyObject *row)
{
    (void)module;
    if (!are_bytes(row, HASH_BYTES))
        return PyErr_Format(PyExc_TypeError, "node_hashes takes a list or tuple of hashes of %d bytes", HASH_BYTES);
    return hashes(row, NODE_PREFIX, 2);
}

static PyMethodDef functions[] = {
    {"leaf_hashes", leaf_hashes, METH_O, NULL},
    {"node_hashes", node_hashes, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "hashing_core", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_hashing_core(void)
{
    if (!has_sha_instructions()) {
        PyErr_SetString(PyExc_ImportError, "this processor has no instructions for SHA-256");
        return NULL;
    }
    return PyModule_Create(&module);
}

# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Words, signatures and likenesses of `text_features` and `duplicates`, compiled, with the same results."""

from zlib import crc32

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t, uint8_t

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeASCII(const char *text, Py_ssize_t size, const char *errors)

cdef enum:
    NUM_HASHES = 64
    MAX_WORDS = 160
    MAX_CHARS = 4096

cdef uint32_t MIX = 0x9E3779B1
cdef uint32_t JOIN = 0x85EBCA6B
cdef uint32_t TIMES[NUM_HASHES]
cdef uint32_t PLUS[NUM_HASHES]
cdef uint32_t CRC[256]


cdef fill_crc():
    cdef uint32_t code, i, bit
    for i in range(256):
        code = i
        for bit in range(8):
            code = code >> 1 ^ (0xEDB88320U if code & 1 else 0)
        CRC[i] = code


fill_crc()


def set_hashes(times, plus):
    """The numbers by which `duplicates` draws its hashes; once, before any signature."""
    cdef Py_ssize_t i
    for i in range(NUM_HASHES):
        TIMES[i], PLUS[i] = times[i], plus[i]


def signature(list words):
    """As `minhash_signature`, of at least one word."""
    cdef uint32_t hashes[MAX_WORDS]
    cdef uint32_t least[NUM_HASHES]
    cdef uint8_t found[NUM_HASHES]
    cdef Py_ssize_t num = min(len(words), MAX_WORDS), length = 0, i, j
    cdef const char *letters
    cdef uint32_t code
    for i in range(num):
        word = words[i]
        if PyUnicode_IS_ASCII(word):
            letters = PyUnicode_AsUTF8AndSize(word, &length)
            code = 0xFFFFFFFFU
            for j in range(length):
                code = code >> 8 ^ CRC[(code ^ <uint8_t>letters[j]) & 255]
            hashes[i] = ~code
        else:
            hashes[i] = crc32(word.encode("utf-8", "surrogatepass"))
    for i in range(NUM_HASHES):
        least[i] = 0xFFFFFFFFU
    for i in range(num):
        take_least(least, hashes[i])
        if i + 1 < num:
            take_least(least, hashes[i] * MIX + hashes[i + 1] * JOIN)
    for i in range(NUM_HASHES):
        found[i] = <uint8_t>(least[i] * JOIN >> 24)
    return (<const char *>found)[:NUM_HASHES]


cdef inline void take_least(uint32_t *least, uint32_t shingle) noexcept:
    cdef uint32_t one
    cdef int i
    for i in range(NUM_HASHES):
        one = TIMES[i] * shingle + PLUS[i]
        least[i] = one if one < least[i] else least[i]


def likenesses(bytes one, list others):
    """As `jaccard_estimates`."""
    cdef Py_ssize_t i, j
    cdef int num_same
    cdef list found = []
    cdef const char *left = PyBytes_AS_STRING(one)
    cdef const char *right
    cdef bint is_signed = PyBytes_GET_SIZE(one) == NUM_HASHES
    cdef bytes other
    for i in range(len(others)):
        other = others[i]
        if not is_signed or PyBytes_GET_SIZE(other) != NUM_HASHES:
            found.append(0.0)
            continue
        right = PyBytes_AS_STRING(other)
        num_same = 0
        for j in range(NUM_HASHES):
            num_same += left[j] == right[j]
        if num_same == NUM_HASHES:
            found.append(1.0)
        else:
            found.append(max(num_same / 64.0 - 1.0 / 256.0, 0.0))
    return found


cdef inline bint is_letter(unsigned char c) noexcept:
    return 97 <= (c | 32) <= 122


cdef inline str word_at(const char *letters, Py_ssize_t length):
    return PyUnicode_DecodeASCII(letters, length, NULL)


def words_of(str text):
    """What `_WORD` of `text_features` finds in a text in ASCII, in lower case; which of it begins with a capital, and
    which are figures. None for any other text.
    """
    cdef Py_ssize_t length = 0, i = 0, start, j
    cdef const char *given
    cdef char letters[MAX_CHARS]
    cdef unsigned char c
    cdef list found = [], capitals = [], figures = []
    if not PyUnicode_IS_ASCII(text):
        return None
    given = PyUnicode_AsUTF8AndSize(text, &length)
    if length > MAX_CHARS:
        return None
    for j in range(length):
        c = <unsigned char>given[j]
        letters[j] = <char>(c + 32 if 65 <= c <= 90 else c)
    while i < length:
        c = <unsigned char>letters[i]
        start = i
        if is_letter(c):
            while i < length and is_letter(<unsigned char>letters[i]):
                i += 1
            word = word_at(letters + start, i - start)
            if given[start] < 97:
                capitals.append(word)
        elif 48 <= c <= 57 and not (i and is_letter(<unsigned char>letters[i - 1])):
            while i < length and (48 <= letters[i] <= 57 or letters[i] == 44 or letters[i] == 46):
                i += 1
            word = word_at(letters + start, i - start)
            figures.append(word)
        else:
            i += 1
            continue
        found.append(word)
    return found, capitals, figures


def bands(bytes signed):
    """As `lsh_bands`."""
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(signed)
    cdef uint64_t value
    cdef int i
    if PyBytes_GET_SIZE(signed) != NUM_HASHES:
        return ()
    found = []
    for i in range(NUM_HASHES // 4):
        value = at[4 * i] | at[4 * i + 1] << 8 | at[4 * i + 2] << 16 | <uint64_t>at[4 * i + 3] << 24
        found.append(value << 4 | i)
    return tuple(found)

# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Word pieces of a text in ASCII by a BERT vocabulary in small letters, with the ids and spans of the general tokenizer.

A text that it cannot divide (other characters, brackets, which may spell a control token, and unknown words) is left to
that tokenizer.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    bytes PyBytes_FromStringAndSize(const char *content, Py_ssize_t size)

cdef enum:
    MAX_CHARS = 8192
    MAX_WORD_CHARS = 100  # of a word; longer ones are unknown
    FIRST = 0
    CONTINUED = 1


cdef class WordPieces:
    """The pieces of a vocabulary: those that begin a word, and those that go on with one."""

    cdef uint64_t *keys
    cdef uint32_t *starts
    cdef unsigned char *lengths
    cdef int32_t *ids
    cdef bytes held
    cdef const char *letters
    cdef Py_ssize_t mask
    cdef Py_ssize_t longest[2]

    def __cinit__(self, first, continued):
        """`first` and `continued` give the id of each piece, without a prefix."""
        cdef Py_ssize_t size = 16, start = 0, place, length
        cdef uint64_t key
        while size < 3 * (len(first) + len(continued)):
            size *= 2
        self.mask = size - 1
        self.keys = <uint64_t *>calloc(size, sizeof(uint64_t))
        self.starts = <uint32_t *>calloc(size, sizeof(uint32_t))
        self.lengths = <unsigned char *>calloc(size, 1)
        self.ids = <int32_t *>calloc(size, sizeof(int32_t))
        if not (self.keys and self.starts and self.lengths and self.ids):
            raise MemoryError
        kept = [
            {word: number for word, number in pieces.items() if word.isascii() and 0 < len(word) <= MAX_WORD_CHARS}
            for pieces in (first, continued)
        ]
        self.held = "".join(["".join(pieces) for pieces in kept]).encode("ascii")
        self.letters = self.held
        for kind, pieces in enumerate(kept):
            self.longest[kind] = max(map(len, pieces), default=0)
            for word, number in pieces.items():
                length = len(word)
                key = hash_of(self.letters + start, length, kind)
                place = key & self.mask
                while self.lengths[place]:
                    place = (place + 1) & self.mask
                self.keys[place], self.starts[place] = key, <uint32_t>start
                self.lengths[place], self.ids[place] = <unsigned char>length, number
                start += length

    def __dealloc__(self):
        free(self.keys)
        free(self.starts)
        free(self.lengths)
        free(self.ids)

    def encode(self, str text):
        """The ids of a text's pieces, and where they start and end in it, as the bytes of int64 [T, 2]; None for a text
        that is left to another tokenizer.
        """
        cdef Py_ssize_t length = 0, i, end, start
        cdef const char *given
        cdef char lowered[MAX_CHARS]
        cdef unsigned char c
        cdef int64_t spans[2 * MAX_CHARS]
        cdef list ids = []
        if not PyUnicode_IS_ASCII(text):
            return None
        given = PyUnicode_AsUTF8AndSize(text, &length)
        if length >= MAX_CHARS:
            return None
        for i in range(length):
            c = <unsigned char>given[i]
            if (c < 32 and c != 10) or c > 126 or c == 91:
                return None
            lowered[i] = <char>(c + 32 if 65 <= c <= 90 else c)
        i = 0
        while i < length:
            start = i
            c = <unsigned char>lowered[i]
            i += 1
            if c == 32 or c == 10:
                continue
            if is_alphanumeric(c):
                while i < length and is_alphanumeric(<unsigned char>lowered[i]):
                    i += 1
            if i - start > MAX_WORD_CHARS or not self.divide(lowered, start, i, ids, spans):
                return None
        return ids, PyBytes_FromStringAndSize(<char *>spans, 2 * len(ids) * sizeof(int64_t))

    cdef bint divide(self, const char *text, Py_ssize_t start, Py_ssize_t end, list ids, int64_t *spans) except -1:
        """Add the pieces of a word, each the longest that there is; false where it is unknown."""
        cdef Py_ssize_t at = 2 * len(ids)
        cdef Py_ssize_t last
        cdef int32_t number
        cdef int kind = FIRST
        while start < end:
            last = min(end, start + self.longest[kind])
            while last > start:
                number = self.find(text + start, last - start, kind)
                if number >= 0:
                    break
                last -= 1
            else:
                return False
            ids.append(number)
            spans[at], spans[at + 1] = start, last
            at += 2
            start, kind = last, CONTINUED
        return True

    cdef int32_t find(self, const char *word, Py_ssize_t length, int kind) noexcept:
        """A piece's id; −1 where it is none."""
        cdef uint64_t key = hash_of(word, length, kind)
        cdef Py_ssize_t place = key & self.mask
        while self.lengths[place]:
            if self.keys[place] == key and self.lengths[place] == length:
                if memcmp(self.letters + self.starts[place], word, length) == 0:
                    return self.ids[place]
            place = (place + 1) & self.mask
        return -1


cdef inline bint is_alphanumeric(unsigned char c) noexcept:
    return 97 <= c <= 122 or 48 <= c <= 57


cdef inline uint64_t hash_of(const char *word, Py_ssize_t length, int kind) noexcept:
    """Odd for pieces that go on with a word, even for others."""
    cdef uint64_t key = 14695981039346656037ULL
    cdef Py_ssize_t i
    for i in range(length):
        key = (key ^ <unsigned char>word[i]) * 1099511628211ULL
    key ^= key >> 29
    return (key & ~<uint64_t>1) | <uint64_t>kind

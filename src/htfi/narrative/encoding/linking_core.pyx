# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Words and signs of tickers in a text in ASCII, as `linking` looks for them."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeASCII(const char *text, Py_ssize_t size, const char *errors)

TAG, RIC, LISTED, PAIR = 1, 2, 4, 8  # kinds of tickers

cdef enum:
    MAX_CHARS = 4096
    MAX_WORDS = 2049


cdef inline bint is_upper(unsigned char c) noexcept:
    return 65 <= c <= 90


cdef inline bint is_word_char(unsigned char c) noexcept:
    return 97 <= c <= 122 or 65 <= c <= 90 or 48 <= c <= 57 or c == 95


def possible_tickers(str text):
    """The kinds of tickers that a text may hold, as bits; all for a text that is not ASCII."""
    cdef Py_ssize_t length = 0, i
    cdef const char *at
    cdef unsigned char c, after
    cdef int found = 0
    if not PyUnicode_IS_ASCII(text):
        return 15
    at = PyUnicode_AsUTF8AndSize(text, &length)
    for i in range(length):
        c = <unsigned char>at[i]
        if is_upper(c):
            if i == 0 or not is_word_char(<unsigned char>at[i - 1]):
                if is_upper(<unsigned char>at[i + 1]) and is_upper(<unsigned char>at[i + 2]):
                    after = <unsigned char>at[i + 3]
                    if is_upper(after) or after == 47:
                        found |= 8
        elif c == 46:  # a dot between a letter or digit and a capital: U.S is no ticker
            if i and is_word_char(<unsigned char>at[i - 1]) and is_upper(<unsigned char>at[i + 1]):
                after = <unsigned char>at[i + 1]
                if at[i - 1] != 85 or (after != 83 and after != 78 and after != 75):
                    found |= 2
                elif i > 1 and is_word_char(<unsigned char>at[i - 2]):
                    found |= 2
        elif c == 36:
            found |= 1
        elif c == 58:
            found |= 4
    return found


cdef struct Word:
    Py_ssize_t start
    Py_ssize_t end
    Py_ssize_t length  # without a possessive ending

cdef struct Slot:
    const char *first  # word of names; NULL where the slot is free
    Py_ssize_t length
    Py_ssize_t number


cdef inline uint64_t hash_of(const char *word, Py_ssize_t length) noexcept:
    cdef uint64_t key = 14695981039346656037ULL
    cdef Py_ssize_t i
    for i in range(length):
        key = (key ^ <unsigned char>word[i]) * 1099511628211ULL
    return key ^ (key >> 32)


cdef class NamedPlaces:
    """The words of all names of a linker, by the first of them."""

    cdef list first_words, names
    cdef Slot *slots
    cdef uint64_t mask

    def __cinit__(self, dict by_word):
        """`by_word` has for each first word the names that begin with it, each with its `words`, folded."""
        cdef uint64_t size = 64, place
        cdef Slot *slot
        self.first_words, self.names = list(by_word), [[name.words for name in called] for called in by_word.values()]
        while size < <uint64_t>(4 * len(by_word)):
            size *= 2
        self.slots, self.mask = <Slot *>calloc(size, sizeof(Slot)), size - 1
        if not self.slots:
            raise MemoryError
        for number, word in enumerate(self.first_words):
            if not word.isascii():  # it stands in no text that is read here
                continue
            first = <str>word
            slot = &self.slots[hash_of(PyUnicode_AsUTF8AndSize(first, NULL), len(first)) & self.mask]
            while slot.first:
                slot = slot + 1 if slot < &self.slots[self.mask] else self.slots
            slot.first, slot.length, slot.number = PyUnicode_AsUTF8AndSize(first, NULL), len(first), number

    def __dealloc__(self):
        free(self.slots)

    def words_of(self, str text, bint has_possessives):
        """Of a text's words, in ASCII and at most 4,096 characters, where they start and end, themselves without a
        possessive ending, folded, and the places at which all words of a name stand; None where none does.
        """
        cdef Py_ssize_t length = 0, i
        cdef const char *given
        cdef char lowered[MAX_CHARS + 1]
        cdef Word words[MAX_WORDS]
        cdef unsigned char c
        cdef int num, place
        cdef list places = []
        given = PyUnicode_AsUTF8AndSize(text, &length)
        if length > MAX_CHARS:
            raise ValueError("a text of too many characters")
        for i in range(length):
            c = <unsigned char>given[i]
            lowered[i] = <char>(c + 32 if is_upper(c) else c)
        num = find_words(given, length, has_possessives, words)
        for place in range(num):
            if self.is_named(lowered, words, place, num):
                places.append(place)
        if not places:
            return None
        return (
            [words[place].start for place in range(num)],
            [words[place].end for place in range(num)],
            [PyUnicode_DecodeASCII(given + words[place].start, words[place].length, NULL) for place in range(num)],
            [PyUnicode_DecodeASCII(lowered + words[place].start, words[place].length, NULL) for place in range(num)],
            places,
        )

    cdef bint is_named(self, const char *lowered, Word *words, int place, int num) except -1:
        """Whether all words of a name stand from a place on."""
        cdef const char *first = lowered + words[place].start
        cdef Py_ssize_t length = words[place].length
        cdef Slot *slot = &self.slots[hash_of(first, length) & self.mask]
        cdef tuple name
        while slot.first:
            if slot.length == length and memcmp(slot.first, first, length) == 0:
                for name in <list>self.names[slot.number]:
                    if follows(name, lowered, words, place, num):
                        return True
                return False
            slot = slot + 1 if slot < &self.slots[self.mask] else self.slots
        return False


cdef bint follows(tuple name, const char *lowered, Word *words, int place, int num) except -1:
    """Whether the words of a name stand from the place of its first on."""
    cdef Py_ssize_t length = 0, at
    cdef const char *word
    if place + len(name) > num:
        return False
    for at in range(1, len(name)):
        word = PyUnicode_AsUTF8AndSize(name[at], &length)
        if words[place + at].length != length or memcmp(lowered + words[place + at].start, word, length) != 0:
            return False
    return True


cdef int find_words(const char *at, Py_ssize_t length, bint has_possessives, Word *words) noexcept:
    cdef Py_ssize_t i = 0
    cdef int num = 0
    while i < length:
        if not is_word_char(<unsigned char>at[i]):
            i += 1
            continue
        words[num].start = i
        while True:
            while i < length and is_word_char(<unsigned char>at[i]):
                i += 1
            # & . * '
            if at[i] in (38, 46, 42, 39) and i + 1 < length and is_word_char(<unsigned char>at[i + 1]):
                i += 1
                continue
            break
        words[num].end = i
        words[num].length = i - words[num].start
        if has_possessives and words[num].length >= 2 and at[i - 2] == 39 and at[i - 1] == 115:
            words[num].length -= 2
        num += 1
    return num

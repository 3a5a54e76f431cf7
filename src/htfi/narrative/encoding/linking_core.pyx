# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Words and signs of tickers in a text in ASCII, as `linking` looks for them."""

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeASCII(const char *text, Py_ssize_t size, const char *errors)

TAG, RIC, LISTED, PAIR = 1, 2, 4, 8  # kinds of tickers

cdef enum:
    MAX_CHARS = 4096


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


def words_of(str text, dict known, bint has_possessives):
    """Of a text's words where they start and end, themselves without a possessive ending, and folded; None where no
    folded word is `known`.
    """
    cdef Py_ssize_t length = 0, i, start
    cdef const char *at
    cdef char lowered[MAX_CHARS]
    cdef unsigned char c
    cdef list starts = [], ends = [], words = [], folded = []
    cdef bint is_named = False
    at = PyUnicode_AsUTF8AndSize(text, &length)
    for i in range(length):
        c = <unsigned char>at[i]
        lowered[i] = <char>(c + 32 if is_upper(c) else c)
    i = 0
    while i < length:
        if not is_word_char(<unsigned char>at[i]):
            i += 1
            continue
        start = i
        while True:
            while i < length and is_word_char(<unsigned char>at[i]):
                i += 1
            if at[i] in (38, 46, 42, 39) and i + 1 < length and is_word_char(<unsigned char>at[i + 1]):  # & . * '
                i += 1
                continue
            break
        starts.append(start)
        ends.append(i)
        length_of = i - start
        if has_possessives and length_of >= 2 and at[i - 2] == 39 and at[i - 1] == 115:
            length_of -= 2
        word = PyUnicode_DecodeASCII(lowered + start, length_of, NULL)
        is_named = is_named or word in known
        folded.append(word)
        words.append(PyUnicode_DecodeASCII(at + start, length_of, NULL))
    return (starts, ends, words, folded) if is_named else None

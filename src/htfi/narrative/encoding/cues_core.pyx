# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Hashed words of a text, the weights that heads give them, and what they make of its tokens, compiled, with the bits of
`heads`.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint32_t, uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    MAX_WORDS = 96
    MAX_CHARS = 8192
    MAX_LABELS = 64

cdef struct Word:
    const char *text
    Py_ssize_t length

cdef uint32_t CRC[256]


cdef fill_crc():
    cdef uint32_t code, i, bit
    for i in range(256):
        code = i
        for bit in range(8):
            code = code >> 1 ^ (0xEDB88320U if code & 1 else 0)
        CRC[i] = code


fill_crc()


cdef inline bint is_letter(unsigned char c) noexcept:
    return 97 <= c <= 122


cdef inline bint is_digit(unsigned char c) noexcept:
    return 48 <= c <= 57


cdef inline bint is_word_char(unsigned char c) noexcept:
    return is_letter(c) or is_digit(c) or c == 95


cdef inline bint is_blank(unsigned char c) noexcept:
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


cdef uint32_t hashed(uint32_t code, const Word *word) noexcept:
    cdef Py_ssize_t i
    for i in range(word.length):
        code = code >> 8 ^ CRC[(code ^ <uint8_t>word.text[i]) & 255]
    return code


cdef int rising(const void *one, const void *other) noexcept nogil:
    cdef uint32_t a = (<const uint32_t *>one)[0], b = (<const uint32_t *>other)[0]
    return (a > b) - (a < b)


def cue_ids(str text):
    """As `heads.cue_ids` of a text in ASCII; None for any other."""
    cdef Py_ssize_t length = 0, i
    cdef const char *given
    cdef char lowered[MAX_CHARS]
    cdef Word words[MAX_WORDS]
    cdef uint32_t ids[2 * MAX_WORDS]
    cdef uint32_t code
    cdef int num, at, num_ids = 0
    cdef unsigned char c
    if not PyUnicode_IS_ASCII(text):
        return None
    given = PyUnicode_AsUTF8AndSize(text, &length)
    if length >= MAX_CHARS:
        return None
    for i in range(length):
        c = <unsigned char>given[i]
        lowered[i] = <char>(c + 32 if 65 <= c <= 90 else c)
    lowered[length] = 0
    num = find_words(lowered, length, words)
    for at in range(num):
        code = hashed(0xFFFFFFFFU, &words[at])
        ids[num_ids] = ~code
        num_ids += 1
        if at + 1 < num:
            code = code >> 8 ^ CRC[(code ^ 32) & 255]
            ids[num_ids] = ~hashed(code, &words[at + 1])
            num_ids += 1
    qsort(ids, num_ids, sizeof(uint32_t), rising)
    return tuple([ids[at] for at in range(num_ids) if not at or ids[at] != ids[at - 1]])


cdef int find_words(const char *text, Py_ssize_t length, Word *words) noexcept:
    """As `cue_words`, of a text in lower case."""
    cdef Py_ssize_t i = 0, start, end
    cdef int num = 0
    cdef unsigned char c
    while i < length and num < MAX_WORDS:
        c = <unsigned char>text[i]
        start = i
        i += 1
        if c == 104 and (end := end_of_link(text, start, length)) > start:
            i = end
            set_word(&words[num], b"<link>", 6)
        elif is_letter(c):
            while is_letter(<unsigned char>text[i]):
                i += 1
            if i - start > 1 and text[i] == 39 and text[i - 1] == 110 and text[i + 1] == 116:
                if not is_word_char(<unsigned char>text[i + 2]):  # n't
                    i += 2
            set_word(&words[num], text + start, i - start)
            if i - start >= 4 and memcmp(text + start, b"http", 4) == 0:
                set_word(&words[num], b"<link>", 6)
        elif c == 36 and (end := end_of_tag(text, start)) > start:
            i = end
            set_word(&words[num], b"<tag>", 5)
        elif c == 64 and is_word_char(<unsigned char>text[i]):
            while is_word_char(<unsigned char>text[i]):
                i += 1
            set_word(&words[num], b"<user>", 6)
        elif is_digit(c) or ((c == 43 or c == 45) and is_digit(<unsigned char>text[i])):
            while is_digit(<unsigned char>text[i]) or text[i] == 44 or text[i] == 46:
                i += 1
            end = end_of_share(text, i)
            if end > i:
                i = end
                set_number(&words[num], c, b"+<pct>", b"-<pct>")
            else:
                set_number(&words[num], c, b"+<num>", b"-<num>")
        elif c == 63 or c == 33:
            set_word(&words[num], text + start, 1)
        else:
            continue
        num += 1
    return num


cdef inline void set_word(Word *word, const char *text, Py_ssize_t length) noexcept:
    word.text, word.length = text, length


cdef inline void set_number(Word *word, unsigned char sign, const char *plus, const char *minus) noexcept:
    if sign == 43 or sign == 45:
        set_word(word, plus if sign == 43 else minus, 6)
    else:
        set_word(word, plus + 1, 5)


cdef Py_ssize_t end_of_link(const char *text, Py_ssize_t at, Py_ssize_t length) noexcept:
    """Where an address ends; where it starts if there is none."""
    cdef Py_ssize_t end = at + 4
    if length - at < 8 or memcmp(text + at, b"http", 4) != 0:
        return at
    if text[end] == 115:
        end += 1
    if memcmp(text + end, b"://", 3) != 0 or end + 3 >= length or is_blank(<unsigned char>text[end + 3]):
        return at
    end += 3
    while end < length and not is_blank(<unsigned char>text[end]):
        end += 1
    return end


cdef Py_ssize_t end_of_tag(const char *text, Py_ssize_t at) noexcept:
    """Where a cash tag ends, at the last place where a word does; where it starts if there is none."""
    cdef Py_ssize_t end = at + 2
    if not is_letter(<unsigned char>text[at + 1]):
        return at
    while end < at + 8 and (is_letter(<unsigned char>text[end]) or text[end] == 46):
        end += 1
    while end > at + 1:
        if is_word_char(<unsigned char>text[end - 1]) != is_word_char(<unsigned char>text[end]):
            return end
        end -= 1
    return at


cdef Py_ssize_t end_of_share(const char *text, Py_ssize_t at) noexcept:
    """Where a percent sign, or its word, ends behind a number; the place itself where there is none."""
    cdef Py_ssize_t end = at + 1 if is_blank(<unsigned char>text[at]) else at
    if text[end] == 37:
        return end + 1
    for word in (b"percent", b"per cent", b"pct", b"bps", b"bp"):
        if starts_with(text + end, word) and not is_word_char(<unsigned char>text[end + len(word)]):
            return end + len(word)
    return at


cdef bint starts_with(const char *text, bytes word) noexcept:
    """A text ends in a zero."""
    cdef Py_ssize_t i
    cdef const char *letters = word
    for i in range(len(word)):
        if text[i] != letters[i]:
            return False
    return True


def weigh(const uint32_t[::1] hashes, const float[:, ::1] weights, list texts, float[:, ::1] out):
    """As `Head.cue_logits`, of each text into a row of `out` [n, labels]: the sum of the weights of its known words, by
    the root of their number.
    """
    cdef Py_ssize_t text
    for text in range(out.shape[0]):
        weigh_text(hashes, weights, <tuple?> texts[text], &out[text, 0])


cdef int weigh_text(const uint32_t[::1] hashes, const float[:, ::1] weights, tuple words, float *out) except -1:
    cdef Py_ssize_t num_hashes = hashes.shape[0], num_labels = weights.shape[1], low, high, middle, label
    cdef uint32_t wanted
    cdef int num = 0
    cdef float root
    for label in range(num_labels):
        out[label] = 0.0
    for word in words:
        wanted = word
        low, high = 0, num_hashes
        while low < high:
            middle = (low + high) >> 1
            if hashes[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low == num_hashes or hashes[low] != wanted:
            continue
        if num:
            for label in range(num_labels):
                out[label] += weights[low, label]
        else:
            for label in range(num_labels):
                out[label] = weights[low, label]
        num += 1
    root = <float>sqrt(<double>(num if num > 1 else 1))
    for label in range(num_labels):
        out[label] = out[label] / root
    return 0


def are_small(const float[:, ::1] rows):
    """Whether every number lies within ±1000, and none is no number."""
    cdef Py_ssize_t i, num = rows.shape[0] * rows.shape[1]
    cdef const float *at
    cdef bint found = True
    if num == 0:
        return True
    at = &rows[0, 0]
    for i in range(num):
        found &= (at[i] <= 1000.0) & (at[i] >= -1000.0)
    return found


def pool(const float[:, ::1] seen, const Py_ssize_t[::1] ends, float[:, :] highest, float[:, :] mean):
    """The largest and the mean of the features [sum of T, S] of each text's tokens, into [n, S] each; `ends` [n] are
    where texts end. Rows are added in their order, as numpy.add.reduce adds them.
    """
    cdef Py_ssize_t text, row, column, start = 0, num_columns = seen.shape[1]
    cdef float one, num
    for text in range(ends.shape[0]):
        for column in range(num_columns):
            highest[text, column] = mean[text, column] = seen[start, column]
        for row in range(start + 1, ends[text]):
            for column in range(num_columns):
                one = seen[row, column]
                highest[text, column] = one if one > highest[text, column] else highest[text, column]
                mean[text, column] += one
        num = <float>(ends[text] - start)
        for column in range(num_columns):
            mean[text, column] /= num
        start = ends[text]

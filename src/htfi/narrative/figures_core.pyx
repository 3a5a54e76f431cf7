# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Where figures begin in a text, compiled.

`facts/figure_scan.py` does the same by patterns where no compiler was at hand; `tests/property/test_facts_compiled.py`
compares the two.
"""

from cpython.unicode cimport (
    PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ,
)

from htfi.narrative.letters cimport is_decimal, is_word


cdef inline bint is_ascii_letter(unsigned int char) noexcept:
    return 97 <= char <= 122 or 65 <= char <= 90


cdef inline int letter_place(unsigned int char) noexcept:
    """1 to 26, whatever its case; 0 for what is no letter of ASCII."""
    return (char | 32) - 96 if is_ascii_letter(char) else 0


def find_figures(match, str text, const unsigned char[:] words):
    """What `finditer` of a pattern for figures finds, as a list, given the method of the compiled pattern.

    A figure begins with a digit, with a sign or a bracket, with letters before a dollar sign, or with a word whose first
    three letters `words` [27 ** 3] marks, and within no word. Letters beyond ASCII are tried.
    """
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text), at = 0, end = 0
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef unsigned int char, before = 32
    cdef list found = []
    while at < length:
        char = PyUnicode_READ(kind, data, at)
        if at >= end and may_begin(kind, data, at, length, char, before, words):
            one = match(text, at)
            if one is not None:
                found.append(one)
                end = one.end()
        before = char
        at += 1
    return found


cdef bint may_begin(
    int kind, void *data, Py_ssize_t at, Py_ssize_t length, unsigned int char, unsigned int before,
    const unsigned char[:] words,
) noexcept:
    cdef unsigned int following = PyUnicode_READ(kind, data, at + 1) if at + 1 < length else 0
    cdef unsigned int third = PyUnicode_READ(kind, data, at + 2) if at + 2 < length else 0
    if char >= 128 or 48 <= char <= 57 or char == 36:  # $
        return True
    if char == 46:  # .
        return is_decimal(following)
    if not is_ascii_letter(char):
        return char == 40 or char == 43 or char == 45  # ( + -
    if following == 36 or (third == 36 and following != 32):
        return True
    if is_ascii_letter(before):
        return False
    if following >= 128 or (is_ascii_letter(following) and third >= 128):
        return True
    return words[letter_place(char) * 729 + letter_place(following) * 27
                 + (letter_place(third) if is_ascii_letter(following) else 0)]

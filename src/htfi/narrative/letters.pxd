# What `re` takes for a character of a word and for a digit; `scan_core` and `figures_core` ask.

from cpython.unicode cimport Py_UNICODE_ISALNUM, Py_UNICODE_ISDECIMAL


cdef inline bint is_word(unsigned int char) noexcept:
    if char < 128:
        return 97 <= char <= 122 or 65 <= char <= 90 or 48 <= char <= 57 or char == 95
    return Py_UNICODE_ISALNUM(char)


cdef inline bint is_decimal(unsigned int char) noexcept:
    if char < 128:
        return 48 <= char <= 57
    return Py_UNICODE_ISDECIMAL(char)

cimport cython

cdef double _MIN_NAMED, _MIN_BESIDE, _MIN_CAPITAL, _TITLED, _MIN_SUM

@cython.locals(
    tokens="const long long[:, :]", named="const double[:]", at=Py_ssize_t, length=Py_ssize_t, num=Py_ssize_t,
    end=Py_ssize_t, start=Py_ssize_t, is_free=bint, is_inside=bint, token=Py_ssize_t, share=double, largest=double,
    span=tuple,
)
cpdef list named_words(str text, tokens, named, list taken)

cdef Py_ssize_t _word_end(str text, Py_ssize_t at, Py_ssize_t length)
cdef bint _is_sign(Py_UCS4 char)
cdef bint _is_letter(Py_UCS4 char)
cdef bint _is_joint(Py_UCS4 char)

@cython.locals(
    num_letters=Py_ssize_t, num_capitals=Py_ssize_t, char=Py_UCS4, word=tuple, is_titled=bint, place=Py_ssize_t,
    num=Py_ssize_t, last=Py_ssize_t, first=Py_ssize_t, states=list,
)
cpdef list name_runs(str text, list words)

@cython.locals(is_plain=bint, at=Py_ssize_t, char=Py_UCS4, written=str, has_sign=bint, before=str, opens=bint)
cdef bint _may_be_named(str text, Py_ssize_t start, Py_ssize_t end, double share, bint is_titled)

@cython.locals(
    tokens="const long long[:, :]", roles="const double[:, :]", effects="const double[:, :]", rows="double[:, ::1]",
    num_tokens=Py_ssize_t, num_roles=Py_ssize_t, place=Py_ssize_t, num=Py_ssize_t, row=Py_ssize_t, token=Py_ssize_t,
    role=Py_ssize_t, good=double, bad=double, whole=double,
)
cpdef tuple means_of_names(names, tokens, roles, effects, Py_ssize_t max_names)

@cython.locals(first=double, second=double, total=double, at=Py_ssize_t)
cdef double _sum_of(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t num)

@cython.locals(total=double, at=Py_ssize_t)
cdef double _every(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t first, Py_ssize_t num)

cimport cython

cdef int _MIRRORED
cdef double _MAX_SCALED

@cython.locals(
    numbers="const long long[::1]", out="unsigned char[::1]", num=Py_ssize_t, at=Py_ssize_t, row=Py_ssize_t,
    start=Py_ssize_t, last=Py_ssize_t, place=Py_ssize_t, first=Py_ssize_t, mirrored=bint, largest="unsigned long long",
    before="long long", step="long long", coded="unsigned long long", size=int,
)
cpdef bytes pack_rows(object values, Py_ssize_t width)

@cython.locals(
    numbers="const double[::1]", found="long long[::1]", place=Py_ssize_t, value=double, scaled=double, size="long long",
    tick="long long",
)
cpdef object pack_scaled(object values, double scale, Py_ssize_t width)

cimport cython
from htfi.pipeline.record cimport casts

cdef int _MIRRORED
cdef long long _MAX_NUMBER
cdef unsigned long long _MAX_CODED
cdef double _MAX_SCALED

@cython.locals(numbers="const long long[::1]", out="unsigned char[::1]", num=Py_ssize_t, at=Py_ssize_t)
cpdef bytes pack_rows(object values, Py_ssize_t width)

@cython.locals(
    row=Py_ssize_t, start=Py_ssize_t, last=Py_ssize_t, place=Py_ssize_t, first=Py_ssize_t,
    mirrored=bint, largest="unsigned long long", before="long long", step="long long", coded="unsigned long long",
    size=int,
)
cpdef Py_ssize_t write_rows(
    const long long[::1] numbers, Py_ssize_t begin, Py_ssize_t num, Py_ssize_t width, unsigned char[::1] out,
    Py_ssize_t at
) except -1

@cython.locals(read="const double[::1]", found="long long[::1]")
cpdef object pack_scaled(object values, double scale, Py_ssize_t width)

@cython.locals(place=Py_ssize_t, value=double, scaled=double, size="long long", tick="long long")
cpdef bint scale_numbers(
    const double[::1] values, Py_ssize_t begin, Py_ssize_t num, double scale, long long[::1] found
) except -1

@cython.locals(read="const unsigned char[::1]", row="long long[::1]", at=Py_ssize_t)
cpdef list unpack_rows(bytes packed, Py_ssize_t width)

@cython.locals(
    read="const unsigned char[::1]", row="long long[::1]", at=Py_ssize_t, place=Py_ssize_t, rows=list, values=list,
)
cpdef list unpack_scaled(bytes packed, double scale, Py_ssize_t width)

@cython.locals(
    mode=int, size=int, is_mirrored=bint, num=Py_ssize_t, first=Py_ssize_t, place=Py_ssize_t, byte=int,
    value="long long", coded="unsigned long long",
)
cdef Py_ssize_t _unpack_row(
    const unsigned char[::1] read, Py_ssize_t at, Py_ssize_t width, long long[::1] row
) except -1

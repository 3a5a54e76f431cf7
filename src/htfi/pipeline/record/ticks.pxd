cimport cython
from htfi.pipeline.record cimport casts

cdef int _MIRRORED, _WIDTH_BITS, _HEAD_BITS, _MAX_WIDTH, _IN_BYTES, _ABOUT_ZERO
cdef long long _MAX_NUMBER
cdef unsigned long long _MAX_CODED, _LOW
cdef double _MAX_SCALED

@cython.locals(numbers="const long long[::1]", out="unsigned char[::1]", num=Py_ssize_t, at=Py_ssize_t)
cpdef bytes pack_rows(object values, Py_ssize_t width, int version)

@cython.locals(
    row=Py_ssize_t, start=Py_ssize_t, last=Py_ssize_t, place=Py_ssize_t, first=Py_ssize_t, is_mirrored=bint,
    is_rising=bint, largest="unsigned long long", falling="unsigned long long", head="unsigned long long",
    middle="long long", step="long long", coded="unsigned long long", waiting="unsigned long long", num_waiting=int, first_size=int,
    size=int, left=int, taken=int,
)
cpdef Py_ssize_t write_bits(
    const long long[::1] numbers, Py_ssize_t begin, Py_ssize_t num, Py_ssize_t width, unsigned char[::1] out,
    Py_ssize_t at, int version
) except -1

@cython.locals(place=Py_ssize_t)
cdef bint _is_mirrored(
    const long long[::1] numbers, Py_ssize_t start, Py_ssize_t last, long long middle
) noexcept

@cython.locals(
    at=Py_ssize_t, row=Py_ssize_t, start=Py_ssize_t, last=Py_ssize_t, place=Py_ssize_t, first=Py_ssize_t,
    mirrored=bint, largest="unsigned long long", before="long long", step="long long", coded="unsigned long long",
    size=int,
)
cdef Py_ssize_t _write_rows(
    const long long[::1] numbers, Py_ssize_t num, Py_ssize_t width, unsigned char[::1] out
) except -1

@cython.locals(read="const double[::1]", found="long long[::1]")
cpdef object pack_scaled(object values, double scale, Py_ssize_t width, int version)

@cython.locals(place=Py_ssize_t, value=double, scaled=double, size="long long", tick="long long")
cpdef bint scale_numbers(
    const double[::1] values, Py_ssize_t begin, Py_ssize_t num, double scale, long long[::1] found
) except -1

@cython.locals(read="const unsigned char[::1]", row="long long[::1]", at=Py_ssize_t)
cpdef list unpack_rows(bytes packed, Py_ssize_t width, int version)

@cython.locals(
    read="const unsigned char[::1]", row="long long[::1]", at=Py_ssize_t, place=Py_ssize_t, rows=list, values=list,
)
cpdef list unpack_scaled(bytes packed, double scale, Py_ssize_t width, int version)

@cython.locals(left=Py_ssize_t)
cdef bint _has_row(const unsigned char[::1] read, Py_ssize_t at, int version) except -1

cdef Py_ssize_t _unpack_next(
    const unsigned char[::1] read, Py_ssize_t at, Py_ssize_t width, long long[::1] row, int version
) except -1

@cython.locals(value="unsigned long long", got=int, skipped=int, taken=int, byte="unsigned long long")
cdef unsigned long long _bits(const unsigned char[::1] read, Py_ssize_t at, int num) noexcept

@cython.locals(
    head="unsigned long long", is_mirrored=bint, is_rising=bint, first_size=int, size=int, num=Py_ssize_t,
    first=Py_ssize_t, place=Py_ssize_t, value="long long", middle="long long", step="long long",
    coded="unsigned long long",
)
cdef Py_ssize_t _unpack_bits(
    const unsigned char[::1] read, Py_ssize_t at, Py_ssize_t width, long long[::1] row, int version
) except -1

@cython.locals(
    mode=int, size=int, is_mirrored=bint, num=Py_ssize_t, first=Py_ssize_t, place=Py_ssize_t, byte=int,
    value="long long", coded="unsigned long long",
)
cdef Py_ssize_t _unpack_row(
    const unsigned char[::1] read, Py_ssize_t at, Py_ssize_t width, long long[::1] row
) except -1

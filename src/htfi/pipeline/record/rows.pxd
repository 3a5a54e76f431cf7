cimport cython
from htfi.pipeline.record cimport casts
from libc cimport math
from htfi.pipeline.record.ticks cimport scale_numbers, write_bits

cdef double _TICKS_PER_UNIT, _WEIGHT_SCALE, _MAX_THOUSANDTHS
cdef int _VERSION, _MAX_DRIVERS, _MAX_FLOAT_BYTES, _MAX_HEAD_BYTES, _IS_LITTLE, _NIL, _FLOAT, _MAP_PAIR
cdef double[::1] _number
cdef unsigned char[::1] _octets

cpdef Py_ssize_t template_number(Py_ssize_t choice, Py_ssize_t num_drivers, bint is_led) except -1

@cython.locals(writer=_RowWriter, row=Py_ssize_t)
cpdef list encode_rows(object parts, object columns)

@cython.final
cdef class _RowWriter:
    cdef object parts, columns
    cdef list bars, previous_widths, names, by_level
    cdef dict known
    cdef bytearray packed
    cdef double quarantine_share
    cdef const signed char[::1] levels, num_drivers, choices
    cdef const unsigned char[::1] are_led
    cdef const double[::1] features, quote_mid, usual, quantiles, weights, calibration
    cdef const long long[::1] quote_age_ns, found, ticks
    cdef long long[::1] whole, places
    cdef Py_ssize_t num_features, num_horizons, num_levels, num_rows, num_zones, capacity, at
    cdef unsigned char[::1] out
    cdef bint is_sound

    cdef object _most_bytes(self)
    @cython.locals(capacity=Py_ssize_t)
    cdef object encode(self, Py_ssize_t row)
    @cython.locals(num=Py_ssize_t, first=Py_ssize_t, column=Py_ssize_t, value=double)
    cdef void _put_features(self, Py_ssize_t row) except *
    @cython.locals(mid=double)
    cdef void _put_circumstances(self, Py_ssize_t row, object bar) except *
    @cython.locals(size=Py_ssize_t, horizon=Py_ssize_t)
    cdef bint _put_forecast(self, Py_ssize_t row) except -1
    @cython.locals(num=Py_ssize_t, place=Py_ssize_t)
    cdef void _put_rationale(self, Py_ssize_t row, object width) except *
    @cython.locals(out="unsigned char[::1]", first=Py_ssize_t, size=Py_ssize_t, place=Py_ssize_t)
    cdef void _put_table(
        self, const long long[::1] numbers, Py_ssize_t begin, Py_ssize_t num, Py_ssize_t width
    ) except *
    cdef void _put_text(self, str text) except *
    cdef void _put_array(self, Py_ssize_t num) noexcept
    cdef void _put_head(self, Py_ssize_t size, int short, int code, int num_short) noexcept
    cdef void _put_int(self, long long value) noexcept
    @cython.locals(place=int)
    cdef void _put_big(self, int code, long long value, int num_bytes) noexcept
    @cython.locals(scaled=double, size="long long", whole="long long", place=int)
    cdef void _put_float(self, double value) noexcept
    @cython.locals(out="unsigned char[::1]", at=Py_ssize_t, place=Py_ssize_t)
    cdef void _put(self, bytes packed) noexcept
    cdef void _put_byte(self, int byte) noexcept

cimport cython
from htfi.pipeline.record cimport casts

cdef double _MAX_THOUSANDTHS

cdef class TextPlaces:
    cdef public dict known
    cdef public dict spelled

    cpdef object pack(self, object text)
    cpdef dict places(self)

cdef class SpelledTexts:
    cdef public list texts

    cpdef str unpack(self, object packed)

@cython.locals(scaled=double, size="long long", whole="long long")
cpdef object pack_float(double value)

cpdef list pack_floats(dict mapping, TextPlaces texts)

cpdef object unpack_float(object packed)

@cython.locals(found=dict, place=Py_ssize_t)
cpdef dict unpack_floats(list flat, SpelledTexts texts)

@cython.locals(flat=list, numbers="long long[::1]", place=Py_ssize_t)
cpdef object whole_numbers(object tables)

@cython.locals(flat=list, numbers="double[::1]", place=Py_ssize_t)
cpdef object floats(object tables)

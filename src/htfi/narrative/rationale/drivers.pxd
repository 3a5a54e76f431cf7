cimport cython

cdef double MIN_RATIO
cdef double MAX_RATIO
cdef double _MAX_RATIO_BELOW

cdef class FeatureBaseline:
    cdef int _min_bars
    cdef double _min_gain
    cdef dict _means
    cdef dict _num_bars

    cpdef object magnitudes(self, object series)

    @cython.locals(num_bars=Py_ssize_t, gain=double, means=dict, size=double, before=double, value=double)
    cpdef object learn(self, object series, object features)

@cython.locals(
    found=list, ratios=list, chosen=list, stories=set, size=double, usually=double, value=double, ratio=double,
)
cpdef list find_drivers(object features, object usual, int limit=*)

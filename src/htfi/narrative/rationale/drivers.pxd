cimport cython

cdef double MIN_RATIO, MAX_RATIO, _MAX_RATIO_BELOW, _NAN
cdef Py_ssize_t _MAX_DRIVERS

cdef class FeatureNames:
    cdef long long[::1] places, families, ranks, are_returns

cdef class FeatureBaseline:
    cdef Py_ssize_t _min_bars, _num_rows, _width
    cdef double _min_gain
    cdef dict _row_of, _place_of, _names
    cdef double[::1] _means
    cdef long long[::1] _num_bars, _num_known

    @cython.locals(
        columns=FeatureNames, width=Py_ssize_t, values="const double[::1]", places="long long[::1]", means="double[::1]",
        at=Py_ssize_t, row=Py_ssize_t, column=Py_ssize_t, place=Py_ssize_t, gain=double, value=double, size=double,
        before=double,
    )
    cpdef object learn(self, object series, tuple names, object features)

    @cython.locals(
        columns=FeatureNames, width=Py_ssize_t, values="const double[::1]", means="double[::1]",
        places="long long[::1]", families="long long[::1]", out_found="long long[::1]", out_usual="double[::1]",
        out_counts="signed char[::1]", ratios="double[::1]", at=Py_ssize_t, row=Py_ssize_t, column=Py_ssize_t,
        best=Py_ssize_t, num=Py_ssize_t, story="long long", mean=double, value=double,
    )
    cpdef object find_drivers(
        self, object series, tuple names, object features, object found, object usual, object counts
    )

    cdef FeatureNames _columns(self, tuple names)
    cdef object _begin(self, object series)
    @cython.locals(row=Py_ssize_t, place=Py_ssize_t, means="double[::1]", num_bars="long long[::1]", num_known="long long[::1]")
    cdef object _make_space(self, Py_ssize_t num_rows, Py_ssize_t width)

@cython.locals(size=double)
cdef double _ratio(double value, double mean, bint is_return)

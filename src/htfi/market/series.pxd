cimport cython
from libc cimport math
from htfi.market.regime cimport Detector

cdef int WINDOW
cdef double DECAY, FAST_BARS, SLOW_BARS, _PARKINSON

@cython.final
cdef class Series:
    cdef bint is_intraday
    cdef long long gap_ns, num_bars, end_ns, num_returns
    cdef double close, variance, move, range, volume_ratio
    cdef double[::1] ranges, volumes
    cdef Detector detector

    @cython.locals(price_close=double, price_open=double, start=double)
    cpdef void add(self, bar)
    @cython.locals(estimate=double)
    cdef void _learn(self, double move)
    @cython.locals(count=longlong, total=double, at=Py_ssize_t, place=Py_ssize_t)
    cdef void _roll(self, double volume)
    @cython.locals(count=longlong, total=double, at=Py_ssize_t)
    cpdef double range_volatility(self)
    cpdef void fill(self, double[::1] values, Py_ssize_t at)
    cpdef int level(self)
    cpdef object regime(self)

@cython.final
cdef class SeriesTable:
    cdef readonly long long gap_ns
    cdef readonly dict series

    cpdef Series find(self, symbol, interval)
    @cython.locals(found=Series)
    cpdef void add(self, bars)
    @cython.locals(found=Series)
    cpdef Series begin(self, symbol, interval)

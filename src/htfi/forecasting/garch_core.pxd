cimport cython

cdef int _OMEGA, _PERSISTENCE, _NEWS, _FALLS, _TAIL, _NUM, _BACKCAST_BARS
cdef double[::1] _LOWEST, _HIGHEST
cdef double _BACKCAST_DECAY, _SMALLEST, _LN2, _HALF_LN_PI, _LARGE, _TINY, _LN_LARGE
cdef double _DAMPING, _LEAST_DAMPING, _MOST_DAMPING

@cython.final
cdef class Fit:
    cdef const double[::1] returns, center, precision
    cdef readonly Py_ssize_t num
    cdef readonly int num_passes
    cdef readonly bint has_leverage
    cdef readonly double loglik, height, variance, backcast
    cdef readonly double[::1] x, gradient, information
    cdef double trial_loglik, trial_variance
    cdef double[::1] trial, trial_gradient, trial_information, slopes, products, jacobian, system

    @cython.locals(t=Py_ssize_t, weight=double, total=double, weights=double)
    cdef void _look_back(self)
    @cython.locals(j=int)
    cpdef bint start(self, const double[::1] x)
    @cython.locals(damping=double)
    cpdef void climb(self, int most_passes, double tolerance)
    @cython.locals(j=int, height=double, usual=double, away=double, pull=double, also=double)
    cdef bint _advance(self)
    @cython.locals(i=int, j=int, width=int, system=double[::1], slope=double, is_held=bint, promised=double)
    cdef double _propose(self, double damping)
    @cython.locals(x=double[::1], slopes=double[::1], products=double[::1], t=Py_ssize_t, move=double)
    cdef void _pass(self)
    @cython.locals(i=int, j=int, products=double[::1], x=double, y=double, ratio=double, digamma=double, trigamma=double)
    cdef void _add_tails(self, double nu, double log_scales, double log_tails, double shares)
    @cython.locals(x=double[::1], jacobian=double[::1], i=int, j=int, a=int, b=int, total=double)
    cdef void _to_climbed(self)

@cython.locals(i=int, j=int, k=int, width=int, pivot=double, factor=double)
cdef void _solve(double[::1] system)
@cython.locals(power=double, f=double, square=double, series=double, k=int)
cdef double _log(double x)
cdef double _stirling(double x)
cdef double _digamma_rest(double x)
cdef double _trigamma(double x)

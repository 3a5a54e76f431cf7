cimport cython
from libc cimport math

cdef int CALM, NORMAL, STRESSED, SHOCK, PATIENCE, MIN_RETURNS
cdef double CALM_BELOW, CALM_UNTIL, STRESSED_FROM, STRESSED_UNTIL, SHOCK_FROM, SHOCK_UNTIL
cdef double SHOCK_SIGMAS, SHOCK_SLOW_SIGMAS, MAX_SIGMAS

@cython.final
cdef class Detector:
    cdef double fast_weight, slow_weight, fast, slow, score, sigmas
    cdef long long num_returns
    cdef readonly int level
    cdef int num_quieter

    @cython.locals(is_outlier=bint)
    cpdef void update(self, double variance, double move)
    cdef void _update_level(self, int wanted)
    cpdef double ratio(self)
    cpdef double last_sigmas(self)
    cpdef long long count(self)

@cython.locals(score=double, level=int)
cpdef int target(double score, int level)

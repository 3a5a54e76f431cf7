cimport cython
from libc cimport math
from htfi.market.regime cimport Detector

cdef double _FOUR_THIRDS, _BV_SCALE, _TP_SCALE, _JUMP_SCALE

@cython.final
cdef class Samples:
    cdef Py_ssize_t num_scales, base, window
    cdef long long[::1] step_ns, grid_ns, is_primed, num, place
    cdef double[::1] last_log, rv, bv, tp, size, root
    cdef readonly long long due_ns
    cdef readonly Detector detector

    @cython.locals(scale=Py_ssize_t, step=longlong)
    cpdef void begin(self, long long now_ns)
    @cython.locals(scale=Py_ssize_t, grid=longlong, step=longlong, num_passed=longlong, num_still=longlong, _=longlong)
    cpdef void catch_up(self, long long now_ns, double price)
    @cython.locals(scale=Py_ssize_t, due=longlong)
    cdef void _find_due(self)
    @cython.locals(window=Py_ssize_t, start=Py_ssize_t, place=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t,
                   second=Py_ssize_t, third=Py_ssize_t, before=Py_ssize_t, size=double, root=double)
    cdef void _push(self, Py_ssize_t scale, double move)
    @cython.locals(start=Py_ssize_t, at=Py_ssize_t, rv=double, bv=double, tp=double)
    cdef void _recompute(self, Py_ssize_t scale)
    cpdef Py_ssize_t count(self, Py_ssize_t scale)
    cpdef double realised(self, Py_ssize_t scale)
    cpdef double bipower(self, Py_ssize_t scale)
    @cython.locals(rv=double)
    cpdef bint has_jump_test(self)
    @cython.locals(count=double, rv=double, bv=double, tp=double)
    cpdef double jump_z(self)

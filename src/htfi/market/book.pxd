cimport cython
from libc cimport math

cdef double _LN2, _MAX_SIZE, _SMALLEST, _LARGEST

@cython.final
cdef class Book:
    cdef long long patience_ns
    cdef double max_spread_fraction, decay_per_ns
    cdef Py_ssize_t num_venues
    cdef double[::1] bid_price, bid_sizes, ask_price, ask_sizes
    cdef long long[::1] bid_ns, ask_ns
    cdef readonly double bid, bid_size, ask, ask_size, mid, flow, depth
    cdef readonly bint is_sound
    cdef readonly long long mid_ns
    cdef double decayed_flow, decayed_depth, decayed_weight
    cdef long long decayed_ns

    cpdef void reserve(self, Py_ssize_t num_venues)
    @cython.locals(venue=Py_ssize_t)
    cpdef void clear(self)
    @cython.locals(was_sound=bint, has_both=bint, old_bid=double, old_bid_size=double, old_ask=double,
                   old_ask_size=double, spread=double, middle=double, flow=double, fade=double)
    cpdef void quote(self, long long now_ns, Py_ssize_t venue, bint has_bid, bint has_ask, double bid, double bid_size, double ask,
                     double ask_size)
    @cython.locals(venue=Py_ssize_t, best=double, total=double, size=double, price=double)
    cdef void _find_bid(self)
    @cython.locals(venue=Py_ssize_t, best=double, total=double, size=double, price=double)
    cdef void _find_ask(self)
    @cython.locals(venue=Py_ssize_t, bid=double, ask=double, newest_bid=longlong, newest_ask=longlong, limit=longlong)
    cdef void _drop_stale(self, long long now_ns)
    cpdef double spread_bps(self)
    @cython.locals(share=double)
    cpdef double microprice_gap_bps(self)
    @cython.locals(fade=double)
    cpdef double imbalance(self, long long now_ns)

cdef double _size(double price, double size)

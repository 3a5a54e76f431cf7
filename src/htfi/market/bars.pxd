cimport cython

@cython.final
cdef class OpenBar:
    cdef readonly object symbol, interval
    cdef readonly int rank
    cdef readonly long long step_ns, start_ns, last_ns
    cdef readonly double target, open, high, low, close, volume, filled, flow, depth, closed_flow
    cdef readonly long long num_flows
    cdef readonly bint is_timed, counts_money, is_open, has_trades, has_closed_flow

    cpdef bint trade(self, long long now_ns, double price, double size)
    cpdef void middle(self, long long now_ns, double mid)
    cpdef void add_flow(self, double flow, double depth)
    cdef void _price(self, long long now_ns, double price)
    @cython.locals(end_ns=longlong)
    cpdef object closing(self, long long available_at_ns, long long row)
    cpdef void drop_flow(self)
    cpdef double open_flow(self)

cimport cython
from htfi.market.bars cimport OpenBar
from htfi.market.book cimport Book
from htfi.market.samples cimport Samples
from htfi.market.series cimport Series, SeriesTable

cdef long long _NEVER_NS
cdef int _TRADE, _BID, _ASK, _QUOTE, _NO_REFERENCE, _TRADES, _MIDS, MIN_RETURNS
cdef int _NORMAL
cdef Py_ssize_t _FIRST_TICK_FEATURE, _FIRST_REALISED_FEATURE
cdef double _NAN, _MAX_SIZE, _SMALLEST, _LARGEST

@cython.final
cdef class Symbol:
    cdef readonly object name
    cdef readonly Samples samples
    cdef readonly Book book
    cdef readonly list bars
    cdef readonly long long last_ns, quote_ns
    cdef readonly double trade_price, reference
    cdef readonly int reference_kind

    cdef void refer_to(self, long long now_ns, int kind, double price)
    cdef void sample(self, long long now_ns)

@cython.final
cdef class Kernel:
    cdef readonly object config
    cdef readonly long long session_gap_ns, quote_stale_ns, due_ns, now_ns, num_bars
    cdef readonly Py_ssize_t max_venues
    cdef readonly list symbols, open_bars, end_ns
    cdef readonly Py_ssize_t num_scales
    cdef readonly tuple feature_names
    cdef double[::1] _row
    cdef readonly dict index, venues

    cpdef Symbol symbol(self, name)
    cpdef Py_ssize_t venue(self, name)
    @cython.locals(symbol=Symbol)
    cpdef list observe(self, event)
    @cython.locals(row=Py_ssize_t, has_asks=bint, ask=double, ask_size=double, symbol=Symbol, bars=list, closed=list)
    cpdef list run(self, list symbols, const int[::1] venues, const long long[::1] ts, const unsigned char[::1] kinds,
                   const int[::1] symbol_codes, const int[::1] venue_codes, const double[::1] prices,
                   const double[::1] sizes, const double[::1] ask_prices, const double[::1] ask_sizes)
    @cython.locals(now_ns=longlong, closed=list, filled=list)
    cdef list apply(self, Symbol symbol, long long at_ns, int kind, Py_ssize_t venue, double price, double size,
                    double ask, double ask_size)
    @cython.locals(closed=list, bar=OpenBar, was_open=bint, is_full=bint)
    cdef list _trade(self, Symbol symbol, long long now_ns, double price, double size)
    @cython.locals(book=Book, bar=OpenBar, was_open=bint)
    cdef void _quote(self, Symbol symbol, long long now_ns, Py_ssize_t venue, bint has_bid, bint has_ask, double bid, double bid_size,
                     double ask, double ask_size)
    @cython.locals(bar=OpenBar, closed=list)
    cdef list _begin_session(self, Symbol symbol, long long now_ns)
    @cython.locals(end_ns=longlong)
    cdef void _watch(self, OpenBar bar)
    @cython.locals(rank=Py_ssize_t, end_ns=longlong, symbol=Symbol)
    cpdef list close_due(self, long long to_ns)
    @cython.locals(place=Py_ssize_t, value=double, found=dict)
    cpdef dict features(self, Series series, name, Py_ssize_t rank)
    @cython.locals(row=Py_ssize_t, place=Py_ssize_t, series=Series, symbol=Symbol, level=int, is_of_mids=bint)
    cpdef object read_rows(self, SeriesTable table, bars, dict ranks, long long at_ns, Py_ssize_t width,
                           double[::1] features, signed char[::1] levels, long long[::1] quote_age_ns,
                           double[::1] quote_mid)
    @cython.locals(bar=OpenBar, samples=Samples, scale=Py_ssize_t)
    cdef void _fill(self, Series series, Symbol symbol, Py_ssize_t rank, double[::1] values, Py_ssize_t at)
    cpdef int level(self, name, int bar_level)
    cdef int _level(self, Symbol symbol, int bar_level)
    cdef object _close(self, OpenBar bar, long long available_at_ns)

cimport cython

cdef double _MIN_WIDER_RATIO, _MAX_NARROWER_RATIO, _MIN_JUMP_SIGMAS
cdef int _FIRST, _STEADY, _WIDENING, _NARROWING, _AFTER_JUMP, _SHOCK

cpdef int choose_opening(
    double width, double previous_width, double last_return, double last_sigmas, bint is_shock
) except -1

@cython.locals(
    width="const double[::1]", previous="const double[::1]", moves="const double[::1]", sigmas="const double[::1]",
    shocks="const unsigned char[::1]", found="signed char[::1]", row=Py_ssize_t,
)
cpdef object choose_openings(
    object widths, object previous_widths, object last_returns, object last_sigmas, object are_shocks, object openings
)

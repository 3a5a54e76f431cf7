cdef void pool_states(const float *states, long num, float *powers, float *out) noexcept nogil

ctypedef fused Number:
    float
    double

cdef void subtract_largest_of(Number *numbers, long num) noexcept nogil
cdef Number sum_of(Number *numbers, long num) noexcept nogil

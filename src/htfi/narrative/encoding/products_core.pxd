cdef void pool_states(const float *states, long num, float *powers, float *out) noexcept nogil

from libc.stdint cimport uint32_t

cdef int weigh_text(const uint32_t[::1] hashes, const float[:, ::1] weights, tuple words, float *out) except -1

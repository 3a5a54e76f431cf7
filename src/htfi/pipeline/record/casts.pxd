cdef inline long long to_whole(double value) noexcept:
    return <long long>value

# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""How alike a point is to earlier ones, compiled, with the bits of `scorer.NoveltyIndex`."""

from libc.math cimport pow, rint
from libc.stdint cimport int8_t, int16_t, int64_t

cdef extern from "whole_products.h":
    int whole_product(const int8_t *held, const int16_t *point, long size) nogil

cdef enum:
    MAX_SIZE = 1024
    MOST = 127  # of a component in whole numbers
    IN_THOUSANDTHS = 1000


cdef class HeldPoints:
    """Points [n, size] in whole numbers, their lengths [n] and when they were read [n]: the index's own arrays."""

    cdef int8_t[:, ::1] points
    cdef double[::1] lengths
    cdef int64_t[::1] read_ns
    cdef const int64_t[::1] decay
    cdef int64_t step_ns

    def __init__(self, points, lengths, read_ns, decay, int64_t step_ns):
        """`decay` is in thousandths, by steps of age; its last is of all that is older."""
        self.points, self.lengths, self.read_ns, self.decay = points, lengths, read_ns, decay
        self.step_ns = step_ns
        if self.points.shape[1] > MAX_SIZE:
            raise ValueError("points of too many components")

    def likest(self, const float[::1] point, list places, int64_t at_ns, Py_ssize_t place):
        """The largest likeness, in thousandths of thousandths, of a point [size] to those at the lists of places, decayed
        by their age, 0 without any; then it is stored at its own `place`.
        """
        cdef int16_t whole[MAX_SIZE]
        cdef long size = self.points.shape[1], at, last = self.decay.shape[0] - 1
        cdef double length
        cdef float scale
        cdef int64_t found, steps, most = 0
        cdef bint is_any = False
        cdef Py_ssize_t other
        cdef list of_symbol
        if point.shape[0] != size:
            raise ValueError("a point of another size")
        for at in range(size):
            whole[at] = as_whole(point[at])
        length = 0.0
        for at in range(size):
            length += <double> (<int> whole[at] * <int> whole[at])
        length = pow(length, 0.5)
        if length == 0.0:
            length = 1.0
        scale = <float> (IN_THOUSANDTHS / length)
        for of_symbol in places:
            for other in of_symbol:
                found = <int64_t> rint(
                    <double> (<float> whole_product(&self.points[other, 0], whole, size) * scale)
                    / self.lengths[other]
                )
                steps = (at_ns - self.read_ns[other]) // self.step_ns if at_ns > self.read_ns[other] else 0
                found *= self.decay[steps if steps < last else last]
                if not is_any or found > most:
                    is_any, most = True, found
        for at in range(size):
            self.points[place, at] = <int8_t> whole[at]
        self.lengths[place], self.read_ns[place] = length, at_ns
        return most


cdef int16_t as_whole(float component) noexcept nogil:
    """What is no number counts as 0."""
    cdef double whole
    if component != component:
        return 0
    whole = rint(<double> (component * <float> 254.0))
    return <int16_t> (MOST if whole > MOST else -MOST if whole < -MOST else whole)

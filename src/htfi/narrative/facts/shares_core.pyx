# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Probabilities of labels from their logits, compiled around numpy's exponentials: with the bits that numpy gives."""

import numpy as np


def scaled(const float[:, :] logits, const float[:] biases, const double[:] warmths, const Py_ssize_t[:] ends):
    """Of logits [n, labels] with their biases, over their temperatures (`warmths`), what they lie below the largest of
    their head, [n, labels]. The labels of a head end before `ends`.
    """
    cdef Py_ssize_t num = logits.shape[0], row, head, start, at
    found = np.empty((num, logits.shape[1]))
    cdef double[:, ::1] values = found
    cdef double most, value
    for row in range(num):
        start = 0
        for head in range(ends.shape[0]):
            for at in range(start, ends[head]):
                value = <double> <float> (logits[row, at] + biases[at]) / warmths[at]
                values[row, at] = value
                if at == start or value > most or value != value:
                    most = value
            for at in range(start, ends[head]):
                values[row, at] -= most
            start = ends[head]
    return found


def divide(double[:, ::1] powers, const Py_ssize_t[:] ends):
    """Divides the powers [n, labels] of each head by their sum."""
    cdef Py_ssize_t row, head, start, at
    cdef double whole
    for row in range(powers.shape[0]):
        start = 0
        for head in range(ends.shape[0]):
            whole = sum_of(&powers[row, start], ends[head] - start)
            for at in range(start, ends[head]):
                powers[row, at] /= whole
            start = ends[head]


cdef double sum_of(const double *values, Py_ssize_t num) noexcept:
    """As numpy adds up to 128 numbers."""
    cdef double total = 0.0
    cdef double sums[8]
    cdef Py_ssize_t at, place
    if num < 8:
        for at in range(num):
            total += values[at]
        return total
    for place in range(8):
        sums[place] = values[place]
    at = 8
    while at < num - num % 8:
        for place in range(8):
            sums[place] += values[at + place]
        at += 8
    total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    while at < num:
        total += values[at]
        at += 1
    return total

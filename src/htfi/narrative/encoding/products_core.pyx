# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Products of the states of tokens with the weights of heads, compiled: a batch in one call, in one fixed order.

`products` leaves them to numpy where no compiler was at hand, or on a processor without AVX2 (`LEVEL` 0).
"""

from libc.string cimport memcpy

cdef extern from "products.h":
    const long WIDTH
    const long MAX_LABELS
    int best_products_level()
    void multiply_text(
        const float *states, long num_tokens, const float *weights, long num_padded, long num_labels, float *out,
        int level,
    ) nogil
    void weigh_tokens(const float *states, long num_tokens, const float *vector, float *out) nogil
    void mix_tokens(const float *states, long num_tokens, const float *shares, float *out) nogil
    void weigh_labels(const float *vector, long num, const float *weights, long num_labels, float *out) nogil

LEVEL = best_products_level()  # of the processor's instructions: 2 AVX-512, 1 AVX2, 0 neither
NUM_COMPONENTS = WIDTH  # of a state
PADDED_TO = 32  # labels of the weights of tokens
MOST_LABELS = MAX_LABELS
MOST_TOKENS = 128  # of a text: numpy adds the powers of more in another order


def multiply(list states, const float[:, ::1] weights, float[:, ::1] out, int level):
    """The products of states n × [T, 384] with weights [384, labels], padded with zeros to a multiple of 32, into `out`
    [sum of T, labels], with the instructions of a level.
    """
    cdef const float[:, ::1] of_text
    cdef long at = 0
    for of_text in states:
        check_states(of_text, at, out.shape[0])
        multiply_text(
            &of_text[0, 0], of_text.shape[0], &weights[0, 0], weights.shape[1], out.shape[1], &out[at, 0], level
        )
        at += of_text.shape[0]


def weigh(list states, const float[::1] vector, float[::1] out):
    """The products of states n × [T, 384] with a vector [384], less the largest of their text, into `out` [sum of T]."""
    cdef const float[:, ::1] of_text
    cdef long at = 0
    for of_text in states:
        check_states(of_text, at, out.shape[0])
        weigh_tokens(&of_text[0, 0], of_text.shape[0], &vector[0], &out[at])
        subtract_largest_of(&out[at], of_text.shape[0])
        at += of_text.shape[0]


def pool(list states, float[::1] powers, float[:, ::1] out):
    """Of each text the mean of its states, and behind it that by their share of the `powers` [sum of T], into `out`
    [n, 768]. `powers` become shares.
    """
    cdef const float[:, ::1] of_text
    cdef long at = 0, text = 0, num
    for of_text in states:
        check_states(of_text, at, powers.shape[0])
        num = of_text.shape[0]
        pool_states(&of_text[0, 0], num, &powers[at], &out[text, 0])
        at += num
        text += 1


def multiply_rows(const float[:, ::1] rows, const float[:, ::1] weights, float[:, :] out):
    """The products of rows [n, K], K a multiple of 8, with weights [K, labels], each row by itself, into `out`."""
    cdef long row
    for row in range(rows.shape[0]):
        weigh_labels(&rows[row, 0], rows.shape[1], &weights[0, 0], weights.shape[1], &out[row, 0])


cdef int check_states(const float[:, ::1] of_text, long at, long most) except -1:
    if of_text.shape[1] != WIDTH or of_text.shape[0] < 1 or at + of_text.shape[0] > most:
        raise ValueError("states are of another shape")
    return 0


cdef void pool_states(const float *states, long num, float *powers, float *out) noexcept nogil:
    """The mean of a text's states, and behind it that by their share of the powers, [768]. Powers become shares."""
    cdef long token, k
    cdef float whole = sum_of(powers, num)
    memcpy(out, states, WIDTH * sizeof(float))
    for token in range(num):
        powers[token] /= whole
        if token:
            for k in range(WIDTH):
                out[k] += states[token * WIDTH + k]
    for k in range(WIDTH):
        out[k] /= <float>num
    mix_tokens(states, num, powers, out + WIDTH)


cdef void subtract_largest_of(Number *numbers, long num) noexcept nogil:
    cdef long at
    cdef Number largest = numbers[0]
    for at in range(1, num):
        if numbers[at] > largest:
            largest = numbers[at]
    for at in range(num):
        numbers[at] -= largest


cdef Number sum_of(Number *numbers, long num) noexcept nogil:
    """As numpy adds up to 128 numbers."""
    cdef Number parts[8]
    cdef Number total = 0.0
    cdef long at, part
    if num < 8:
        for at in range(num):
            total += numbers[at]
        return total
    for part in range(8):
        parts[part] = numbers[part]
    for at in range(8, num - num % 8, 8):
        for part in range(8):
            parts[part] += numbers[at + part]
    total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
    for at in range(num - num % 8, num):
        total += numbers[at]
    return total

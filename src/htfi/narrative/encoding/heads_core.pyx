# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Heads on the states of a batch's tokens, each set in one call, with the bits of `heads` and of `facts.network`.

Exponentials and tangents are numpy's, each taken for the whole batch at once: what one of them gives depends on neither
place nor neighbours.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from htfi.narrative.encoding.cues_core cimport weigh_text
from htfi.narrative.encoding.products_core cimport pool_states, subtract_largest_of, sum_of

import numpy

cdef extern from "products.h":
    const long WIDTH
    const long MAX_LABELS
    int best_products_level()
    void multiply_text(
        const float *states, long num_tokens, const float *weights, long num_padded, long num_labels, float *out,
        int level,
    ) nogil
    void weigh_tokens(const float *states, long num_tokens, const float *vector, float *out) nogil
    void weigh_labels(const float *vector, long num, const float *weights, long num_labels, float *out) nogil

cdef enum:
    MOST = 128  # labels of all heads of a set together
    MAX_TOKENS = 128  # of a text: numpy adds the powers of more in another order
    PADDED_TO = 32  # labels of the weights of tokens
    STATE = 384

MOST_LABELS = MOST
cdef int LEVEL = best_products_level()
cdef object EMPTY = numpy.empty, EXP = numpy.exp, TANH = numpy.tanh
cdef object SINGLE = numpy.dtype("f4"), DOUBLE = numpy.dtype("f8")


cdef long num_plain_tokens(list states) except -2:
    """How many tokens the states n × [T, 384] have; −1 where compiled code cannot read them: another shape or kind, a
    number that is none or beyond ±1000, a text of one token or of more than `MAX_TOKENS`.
    """
    cdef const float[:, ::1] of_text
    cdef long total = 0
    for one in states:
        try:
            of_text = one
        except (TypeError, ValueError, BufferError):
            return -1
        if of_text.shape[1] != WIDTH or of_text.shape[0] < 2 or of_text.shape[0] > MAX_TOKENS:
            return -1
        if not are_small(&of_text[0, 0], of_text.shape[0] * WIDTH):
            return -1
        total += of_text.shape[0]
    return total


cdef bint are_small(const float *numbers, long num) noexcept nogil:
    """Whether all lie within ±1000, and none is no number."""
    cdef long i
    cdef int found = 1
    for i in range(num):
        found &= (numbers[i] <= 1000.0) & (numbers[i] >= -1000.0)
    return found


cdef class _Cues:
    """Words that a head knows by their hashes [K], and what each weighs for its labels [K, labels]."""

    cdef const uint32_t[::1] hashes
    cdef const float[:, ::1] weights

    def __init__(self, hashes, weights):
        self.hashes, self.weights = hashes, weights


cdef class _TextHead:
    """The weights [768, labels] of a head of the text."""

    cdef const float[:, ::1] weights

    def __init__(self, weights):
        self.weights = weights


cdef class _TokenHead:
    """The weights [384, labels] of a head of the tokens, padded to a multiple of 32, its biases and temperature."""

    cdef const float[:, ::1] weights
    cdef const float[::1] biases
    cdef double temperature
    cdef long num

    def __init__(self, weights, biases, double temperature):
        self.weights, self.biases, self.temperature = weights, biases, temperature
        self.num = self.biases.shape[0]


cdef class FeatureHeads:
    """Heads of features of tokens, as `heads.Head` describes them, of one width and read as one."""

    cdef const float[:, ::1] token_weights, weights
    cdef const float[::1] token_biases, biases
    cdef const double[::1] temperatures
    cdef list num_labels, cues
    cdef long num_seen, width
    cdef bint is_added_in_single, is_usable

    def __init__(
        self, token_weights, token_biases, weights, biases, temperatures, list num_labels, list cues,
        bint is_added_in_single,
    ):
        """Shapes: token weights [384, S] and biases [S]; weights [384 + 2S, labels], biases and temperatures [labels],
        for the heads with so many labels each, and `cues` (hashes, weights) each. `is_added_in_single` says whether
        biases are added before or after logits become doubles.
        """
        cdef _Cues one
        self.is_usable = False
        try:
            self.token_weights, self.token_biases = token_weights, token_biases
            self.weights, self.biases, self.temperatures = weights, biases, temperatures
            self.cues = [_Cues(*known) for known in cues]
        except (TypeError, ValueError, BufferError):
            return
        self.num_labels, self.is_added_in_single = num_labels, is_added_in_single
        self.num_seen, self.width = self.token_weights.shape[1], WIDTH + 2 * self.token_weights.shape[1]
        labels = self.weights.shape[1]
        self.is_usable = (
            LEVEL > 0
            and self.token_weights.shape[0] == WIDTH
            and 0 < self.num_seen <= MAX_LABELS
            and self.num_seen % PADDED_TO == 0
            and self.weights.shape[0] == self.width
            and labels != 2  # numpy's kernel adds these in yet another order
            and labels <= MOST
            and sum(num_labels) == labels == self.biases.shape[0] == self.temperatures.shape[0]
        )
        for num, one in zip(num_labels, self.cues):
            if one.hashes.shape[0] and (one.weights.shape[0], one.weights.shape[1]) != (one.hashes.shape[0], num):
                self.is_usable = False

    def shares(self, points, list states, list words):
        """Probabilities [n, labels] from points [n, 384], states n × [T, 384] and the cues of the texts; None for what
        compiled code cannot read.
        """
        cdef const float[:, ::1] rows, of_text
        cdef float[:, ::1] seen
        cdef double[:, ::1] out
        cdef long total, num = len(states), text, at = 0
        cdef float row[STATE + 2 * 512]
        if not self.is_usable or not num:
            return None
        try:
            rows = points
        except (TypeError, ValueError, BufferError):
            return None
        total = num_plain_tokens(states)
        if total < 0 or rows.shape[0] != num or len(words) != num or rows.shape[1] != WIDTH:
            return None
        if not are_small(&rows[0, 0], num * WIDTH):
            return None
        features = EMPTY((total, self.num_seen), SINGLE)
        found = EMPTY((num, self.weights.shape[1]), DOUBLE)
        seen, out = features, found
        for of_text in states:
            multiply_text(
                &of_text[0, 0], of_text.shape[0], &self.token_weights[0, 0], self.num_seen, self.num_seen, &seen[at, 0],
                LEVEL,
            )
            at += of_text.shape[0]
        add_to_each(&seen[0, 0], total, self.num_seen, &self.token_biases[0])
        TANH(features, features)
        at = 0
        for text in range(num):
            of_text = states[text]
            memcpy(row, &rows[text, 0], WIDTH * sizeof(float))
            pool(&seen[at, 0], of_text.shape[0], self.num_seen, row + WIDTH)
            self.weigh(row, <tuple?> words[text], &out[text, 0])
            at += of_text.shape[0]
        EXP(found, found)
        for text in range(num):
            share_each(&out[text, 0], self.num_labels)
        return found

    cdef int weigh(self, const float *row, tuple words, double *out) except -1:
        """Logits less the largest of their head."""
        cdef float logits[MOST]
        cdef float of_cues[MOST]
        cdef long label, num = self.weights.shape[1], first = 0, of_head
        cdef double sum_of_both
        cdef _Cues known
        weigh_labels(row, self.width, &self.weights[0, 0], num, logits)
        memset(of_cues, 0, sizeof(of_cues))
        for of_head, known in zip(self.num_labels, self.cues):
            if known.hashes.shape[0]:
                weigh_text(known.hashes, known.weights, words, of_cues + first)
            first += of_head
        for label in range(num):
            if self.is_added_in_single:
                sum_of_both = <double> (logits[label] + self.biases[label])
            else:
                sum_of_both = <double> logits[label] + <double> self.biases[label]
            out[label] = (sum_of_both + <double> of_cues[label]) / self.temperatures[label]
        subtract_largest(out, self.num_labels)
        return 0


cdef class StateHeads:
    """The heads of facts: of a text's mean state beside its mean by attention, and of each token's state."""

    cdef const float[::1] attention, biases
    cdef const double[::1] temperatures
    cdef list text_heads, num_labels, token_heads
    cdef long num_of_tokens
    cdef bint is_usable

    def __init__(self, attention, list weights, biases, temperatures, list token_heads):
        """Shapes: attention [384]; weights [768, labels] by head of the text, with biases and temperatures of all of
        them; by head of the tokens (weights [384, labels], padded to a multiple of 32, biases, temperature).
        """
        cdef _TextHead of_text
        cdef _TokenHead of_token
        self.is_usable = False
        try:
            self.attention, self.biases, self.temperatures = attention, biases, temperatures
            self.text_heads = [_TextHead(one) for one in weights]
            self.token_heads = [_TokenHead(*one) for one in token_heads]
        except (TypeError, ValueError, BufferError):
            return
        self.num_labels = [one.shape[1] for one in weights]
        self.num_of_tokens = sum([len(of_labels) for _, of_labels, _ in token_heads])
        usable = (
            LEVEL > 0 and self.attention.shape[0] == WIDTH
            and sum(self.num_labels) == self.biases.shape[0] == self.temperatures.shape[0] <= MOST
        )
        for of_text in self.text_heads:  # of two labels numpy's kernel adds in yet another order
            usable = usable and of_text.weights.shape[0] == 2 * WIDTH and of_text.weights.shape[1] != 2
        for of_token in self.token_heads:
            usable = (
                usable
                and of_token.weights.shape[0] == WIDTH
                and of_token.weights.shape[1] % PADDED_TO == 0
                and of_token.num <= of_token.weights.shape[1] <= MAX_LABELS
                and of_token.num % 16 < 8  # of others it adds in another order
            )
        self.is_usable = usable

    def shares(self, list states):
        """Of the heads of the text [n, labels], and of each head of the tokens [sum of T, labels]; None for what
        compiled code cannot read.
        """
        cdef const float[:, ::1] of_text
        cdef float[::1] powers
        cdef _TextHead text_head
        cdef _TokenHead token_head
        cdef double[::1] out
        cdef float row[2 * STATE]
        cdef float logits[MOST]
        cdef long total, num = len(states), at = 0, text, first, label, labels, token, start
        cdef float *of_token
        if not self.is_usable or not num:
            return None
        total = num_plain_tokens(states)
        if total < 0:
            return None
        labels = self.biases.shape[0]
        all_powers, found = EMPTY(total, SINGLE), EMPTY(num * labels + total * self.num_of_tokens, DOUBLE)
        powers, out = all_powers, found
        for of_text in states:
            weigh_tokens(&of_text[0, 0], of_text.shape[0], &self.attention[0], &powers[at])
            subtract_largest_of(&powers[at], of_text.shape[0])
            at += of_text.shape[0]
        EXP(all_powers, all_powers)
        at = 0
        for text in range(num):
            of_text = states[text]
            pool_states(&of_text[0, 0], of_text.shape[0], &powers[at], row)
            first = 0
            for text_head in self.text_heads:
                weigh_labels(row, 2 * WIDTH, &text_head.weights[0, 0], text_head.weights.shape[1], logits + first)
                first += text_head.weights.shape[1]
            for label in range(labels):
                out[text * labels + label] = (
                    <double> (logits[label] + self.biases[label]) / self.temperatures[label]
                )
            subtract_largest(&out[text * labels], self.num_labels)
            at += of_text.shape[0]
        start = num * labels
        for token_head in self.token_heads:
            of_tokens = EMPTY(total * token_head.num, SINGLE)
            powers = of_tokens
            at = 0
            for of_text in states:
                multiply_text(
                    &of_text[0, 0], of_text.shape[0], &token_head.weights[0, 0], token_head.weights.shape[1],
                    token_head.num, &powers[at * token_head.num], LEVEL,
                )
                at += of_text.shape[0]
            for token in range(total):
                of_token = &powers[token * token_head.num]
                for label in range(token_head.num):
                    out[start + label] = <double> (of_token[label] + token_head.biases[label]) / token_head.temperature
                subtract_largest_of(&out[start], token_head.num)
                start += token_head.num
        EXP(found, found)
        for text in range(num):
            share_each(&out[text * labels], self.num_labels)
        start = num * labels
        by_token = []
        for token_head in self.token_heads:
            for token in range(total):
                share(&out[start + token * token_head.num], token_head.num)
            by_token.append(found[start : start + total * token_head.num].reshape(total, token_head.num))
            start += total * token_head.num
        return found[: num * labels].reshape(num, labels), by_token


cdef void add_to_each(float *rows, long num, long width, const float *added) noexcept nogil:
    cdef long row, at
    for row in range(num):
        for at in range(width):
            rows[row * width + at] += added[at]


cdef void pool(const float *seen, long num, long num_seen, float *out) noexcept nogil:
    """The largest feature of a text's tokens, and behind it their mean; rows are added in their order."""
    cdef long token, at
    cdef float one
    cdef float *mean = out + num_seen
    for at in range(num_seen):
        out[at] = mean[at] = seen[at]
    for token in range(1, num):
        for at in range(num_seen):
            one = seen[token * num_seen + at]
            out[at] = one if one > out[at] else out[at]
            mean[at] += one
    for at in range(num_seen):
        mean[at] /= <float> num


cdef int subtract_largest(double *logits, list num_labels) except -1:
    """Of each head."""
    cdef long num
    for num in num_labels:
        subtract_largest_of(logits, num)
        logits += num
    return 0


cdef int share_each(double *powers, list num_labels) except -1:
    """The powers of each head by their sum."""
    cdef long num
    for num in num_labels:
        share(powers, num)
        powers += num
    return 0


cdef void share(double *powers, long num) noexcept nogil:
    cdef long at
    cdef double whole = sum_of(powers, num)
    for at in range(num):
        powers[at] /= whole

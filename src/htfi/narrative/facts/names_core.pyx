# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Names of a text and the means of what a network says of each, compiled.

`name_words.py` is the same in Python, and what serves where no compiler was at hand; `tests/property/test_facts_compiled.py`
compares the two.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport (
    PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ, Py_UNICODE_ISALNUM, Py_UNICODE_ISALPHA,
    Py_UNICODE_ISDECIMAL, Py_UNICODE_ISDIGIT, Py_UNICODE_ISSPACE, Py_UNICODE_ISUPPER,
)

import numpy as np

from htfi.narrative.facts.name_words import (
    DESCRIPTIONS, MIN_BESIDE, MIN_CAPITAL, MIN_NAMED, MIN_SUM, NO_NAME, TITLED,
)

cdef double LEAST_NAMED = MIN_NAMED, LEAST_BESIDE = MIN_BESIDE, LEAST_CAPITAL = MIN_CAPITAL, LEAST_SUM = MIN_SUM
cdef double SHARE_TITLED = TITLED

cdef struct Word:
    Py_ssize_t start, end
    double share  # the largest of its tokens: the probability of belonging to a party
    bint may_be_named

cdef struct Text:
    int kind
    void *data
    Py_ssize_t length


cdef inline unsigned int char_at(Text *text, Py_ssize_t at) noexcept:
    return PyUnicode_READ(text.kind, text.data, at)


cdef inline bint is_sign(unsigned int char) noexcept:
    """Whether it is a letter or a digit."""
    if char < 128:
        return 97 <= char <= 122 or 65 <= char <= 90 or 48 <= char <= 57
    return Py_UNICODE_ISALNUM(char)


cdef inline bint is_letter(unsigned int char) noexcept:
    if char < 128:
        return 97 <= char <= 122 or 65 <= char <= 90
    return Py_UNICODE_ISALNUM(char) and not Py_UNICODE_ISDECIMAL(char)


cdef inline bint is_joint(unsigned int char) noexcept:
    return char == 46 or char == 38 or char == 39 or char == 0x2019 or char == 43  # . & ' ’ +


cdef Py_ssize_t word_end(Text *text, Py_ssize_t at) noexcept:
    """Where a word ends that begins at `at`; `at` where none does: 'U.S.', 'AT&T', 'Moody's', 'Disney+'."""
    cdef Py_ssize_t end = at, length = text.length
    cdef int num = 0
    if not is_sign(char_at(text, at)):
        return at
    while end + 1 < length and is_letter(char_at(text, end)) and char_at(text, end + 1) == 46:
        end += 2
        num += 1
    if num >= 2:
        return end
    end = at
    while True:
        while end < length and is_sign(char_at(text, end)):
            end += 1
        if end + 1 < length and is_joint(char_at(text, end)) and is_sign(char_at(text, end + 1)):
            end += 1
            continue
        break
    return end + 1 if end < length and char_at(text, end) == 43 else end


cdef bint opens(Text *text, Py_ssize_t start) noexcept:
    """Whether a word opens its text, a clause or a quotation."""
    cdef Py_ssize_t at = start - 1
    cdef unsigned int char
    while at >= 0:
        char = char_at(text, at)
        if not (char == 34 or char == 39 or char == 0x201C or char == 0x2018 or char == 40 or char == 32):  # "'“‘(
            break
        at -= 1
    if at < 0:
        return True
    at = start - 1
    while at >= 0 and Py_UNICODE_ISSPACE(char_at(text, at)):
        at -= 1
    if at < 0:
        return False
    char = char_at(text, at)
    return char == 58 or char == 59 or char == 46  # : ; .


cdef bint may_be_named(str text, Text *chars, Word *word, bint is_titled) except -1:
    """Whether a word may belong to a name."""
    cdef Py_ssize_t at
    cdef unsigned int char
    cdef bint has_sign = False, is_alpha = True
    for at in range(word.start, word.end):
        char = char_at(chars, at)
        if char >= 128:
            has_sign = has_sign or Py_UNICODE_ISUPPER(char) or Py_UNICODE_ISDIGIT(char)
            is_alpha = is_alpha and Py_UNICODE_ISALPHA(char)
        elif not 97 <= char <= 122:
            has_sign = has_sign or 65 <= char <= 90 or 48 <= char <= 57
            is_alpha = is_alpha and 65 <= char <= 90
    if not has_sign:
        return False
    if word.share < LEAST_NAMED:
        if is_titled or not is_alpha or not Py_UNICODE_ISUPPER(char_at(chars, word.start)):
            return False
        if word.share < LEAST_BESIDE or (word.share < LEAST_CAPITAL and opens(chars, word.start)):
            return False
    return text[word.start:word.end].casefold() not in NO_NAME


cdef bint joins(Text *text, Py_ssize_t start, Py_ssize_t end) noexcept:
    """Whether what stands between two words joins them to one name."""
    cdef unsigned int first
    if end - start == 1:
        first = char_at(text, start)
        return first == 32 or first == 45 or first == 38 or first == 47 or first == 39 or first == 0x2019  # - & / ' ’
    if end - start == 2:
        return char_at(text, start) == 46 and char_at(text, start + 1) == 32
    return (
        end - start == 3 and char_at(text, start) == 32 and char_at(text, start + 1) == 38
        and char_at(text, start + 2) == 32
    )


cdef Py_ssize_t read_words(
    Text *text, const long long[:, :] tokens, const double[:, :] roles, list taken, Word *words
) except -1:
    """The words that lie over no span that is taken, and over some token, into `words`; their number."""
    cdef Py_ssize_t at = 0, start, end, num = 0, token, num_tokens = roles.shape[0], last = roles.shape[1] - 1
    cdef Py_ssize_t first = 0  # tokens before it end before the word
    cdef double largest, share
    cdef bint is_free, is_inside, is_rising = True
    while num_tokens and tokens[num_tokens - 1, 1] <= 0:  # a control token at the end stands nowhere
        num_tokens -= 1
    for token in range(1, num_tokens):
        is_rising = is_rising and tokens[token, 0] >= tokens[token - 1, 0]
    while at < text.length:
        end = word_end(text, at)
        if end == at:
            at += 1
            continue
        start, at = at, end
        if end - start > 2 and char_at(text, end - 1) == 115 and (
            char_at(text, end - 2) == 39 or char_at(text, end - 2) == 0x2019
        ):
            end -= 2
        is_free = True
        for span in taken:
            if start < <Py_ssize_t> (<tuple> span)[1] and end > <Py_ssize_t> (<tuple> span)[0]:
                is_free = False
        if not is_free:
            continue
        largest, is_inside = 0.0, False
        while first < num_tokens and tokens[first, 1] <= start:
            first += 1
        for token in range(first, num_tokens):
            if is_rising and tokens[token, 0] >= end:
                break
            if tokens[token, 0] < end and tokens[token, 1] > start:
                share = 1.0 - roles[token, last]
                if not is_inside or share > largest or share != share:
                    largest = share
                is_inside = True
                if share != share:  # NaN: nothing is known of the word
                    break
        if is_inside and largest == largest:
            words[num] = Word(start, end, largest, False)
            num += 1
    return num


cdef list found_names(str text, list taken, const long long[:, :] tokens, const double[:, :] roles):
    """See `name_words.find_names`."""
    cdef Text chars = Text(PyUnicode_KIND(text), PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text))
    cdef Word *words = <Word *> PyMem_Malloc((chars.length // 2 + 2) * sizeof(Word))
    cdef Py_ssize_t num, place, first, last, at, num_letters = 0, num_capitals = 0
    cdef unsigned int char
    cdef bint is_titled
    cdef double least
    cdef list found = [(span[0], span[1], place) for place, span in enumerate(taken)]
    if words == NULL:
        raise MemoryError
    try:
        num = read_words(&chars, tokens, roles, taken, words)
        for place in range(num):
            char = char_at(&chars, words[place].start)
            if Py_UNICODE_ISALPHA(char):
                num_letters += 1
                num_capitals += Py_UNICODE_ISUPPER(char)
        is_titled = num_capitals > SHARE_TITLED * max(num_letters, 1)
        least = LEAST_NAMED if is_titled else LEAST_CAPITAL
        for place in range(num):
            words[place].may_be_named = may_be_named(text, &chars, &words[place], is_titled)
        place = 0
        while place < num:
            if not words[place].may_be_named:
                place += 1
                continue
            first = last = place
            while (
                last + 1 < num and words[last + 1].may_be_named
                and joins(&chars, words[last].end, words[last + 1].start)
            ):
                last += 1
            while first < last and text[words[first].start:words[first].end].casefold() in DESCRIPTIONS:
                first += 1  # what only describes the company before it
            for at in range(first, last + 1):
                if words[at].share >= least:
                    found.append((words[first].start, words[last].end, -1))
                    break
            place = last + 1
    finally:
        PyMem_Free(words)
    found.sort()
    return found


def find_names(str text, list taken, tokens, roles):
    """See `name_words.find_names`."""
    return found_names(text, taken, tokens, roles)


def find_parties(str text, list taken, tokens, roles, effects, Py_ssize_t max_names):
    """See `name_words.find_parties`."""
    cdef const long long[:, :] spans = tokens
    cdef const double[:, :] of_roles = roles
    cdef const double[:, :] of_effects
    cdef double[:, ::1] rows
    cdef list names = found_names(text, taken, spans, of_roles), kept = [], goods = []
    cdef Py_ssize_t num_roles = of_roles.shape[1] - 1, num_tokens = of_roles.shape[0], token, role, num, row = 0
    cdef Py_ssize_t start, end
    cdef double good, bad, whole
    shares = np.empty((min(<Py_ssize_t> len(names), max_names), num_roles))
    if not names:
        return kept, shares, goods
    of_effects, rows = effects, shares
    for name in names:
        if row == max_names:
            break
        start, end = (<tuple> name)[0], (<tuple> name)[1]
        num = 0
        good = bad = 0.0
        for token in range(num_tokens):
            if spans[token, 0] < end and spans[token, 1] > start:
                for role in range(num_roles):
                    rows[row, role] = of_roles[token, role] if num == 0 else rows[row, role] + of_roles[token, role]
                good += of_effects[token, 0]
                bad += of_effects[token, 2]
                num += 1
        if num == 0:
            continue
        for role in range(num_roles):
            rows[row, role] = rows[row, role] / num
        whole = max(sum_of(rows, row, num_roles), LEAST_SUM)
        for role in range(num_roles):
            rows[row, role] = rows[row, role] / whole
        kept.append(name)
        goods.append(round(good / num - bad / num, 3))
        row += 1
    return kept, shares[:row], goods


cdef double sum_of(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t num) noexcept:
    """As numpy adds the numbers of a row, 8 to 128 of them."""
    cdef double first = (every(rows, row, 0, num) + every(rows, row, 1, num)) + (
        every(rows, row, 2, num) + every(rows, row, 3, num)
    )
    cdef double second = (every(rows, row, 4, num) + every(rows, row, 5, num)) + (
        every(rows, row, 6, num) + every(rows, row, 7, num)
    )
    cdef double total = first + second
    cdef Py_ssize_t at
    for at in range(num - num % 8, num):
        total += rows[row, at]
    return total


cdef double every(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t first, Py_ssize_t num) noexcept:
    """The sum of every eighth number of a row."""
    cdef double total = rows[row, first]
    cdef Py_ssize_t at
    for at in range(first + 8, num - num % 8, 8):
        total += rows[row, at]
    return total

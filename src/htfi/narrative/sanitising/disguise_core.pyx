# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Says in one pass over a text which steps of `deobfuscation` could change it or find something in it.

A step that is not named certainly does neither; one that is named is run, and decides. Only printable ASCII is judged:
for any other text every step is named. `tests/property/test_sanitising_compiled.py` compares the two.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

REWRITTEN, TAIL, SPLIT, CODES, CIPHERS = 1, 2, 4, 8, 16  # markup, blanks, length and what is not ASCII; the steps
cdef enum:
    rewritten = 1
    tail = 2
    split = 4
    codes = 8
    ciphers = 16

cdef enum:
    MAX_TOKENS = 2048  # of a text; a longer one is judged by the steps themselves
    MAX_CHARS = 16384
    MAX_DECIPHERED = 4000  # characters of a text in which `encodings` looks for ciphers
    MAX_LETTERS = 128  # of words that are looked up
    PLAIN = 1  # a common word's number; 2 of one of grammar
    MIN_KINDS = 3  # of instruction words
    LETTER = 1
    UPPER = 2
    DIGIT = 4
    HEX = 8
    STRIPPED = 16  # signs about a word: .,:;!?"'()[]
    JOINT = 32  # signs between single letters, ASCII: blank . - _ * | / + ~ , ' ^ =
    INNER = 64  # signs inside a word: . _ * | ~ ^ + =
    LEET = 128  # digits and @ $ !

cdef unsigned char KIND[256]
cdef char LOWER[256]
cdef char LETTERED[256]
cdef char LETTERED_L[256]


cdef fill_tables():
    cdef int c, plain
    for c in range(256):
        LOWER[c] = <char>(c + 32 if 65 <= c <= 90 else c)
        LETTERED[c] = LETTERED_L[c] = LOWER[c]
        KIND[c] = 0
        if 65 <= c <= 90:
            KIND[c] = LETTER | UPPER
        elif 97 <= c <= 122:
            KIND[c] = LETTER
        elif 48 <= c <= 57:
            KIND[c] = DIGIT | LEET
        if 48 <= c <= 57 or 65 <= c <= 70 or 97 <= c <= 102:
            KIND[c] |= HEX
    for c in bytearray(b".,:;!?\"'()[]"):
        KIND[c] |= STRIPPED
    for c in bytearray(b" .-_*|/+~,'^="):
        KIND[c] |= JOINT
    for c in bytearray(b"._*|~^+="):
        KIND[c] |= INNER
    for c in bytearray(b"@$!"):
        KIND[c] |= LEET
    for c, plain in zip(bytearray(b"0134578@$!"), bytearray(b"oieastbasi")):
        LETTERED[c] = <char>plain
    for c, plain in zip(bytearray(b"0134578@$!"), bytearray(b"oleastbasl")):
        LETTERED_L[c] = <char>plain


fill_tables()

# What stands in every boilerplate tail: `_TAIL_HINTS` that are ASCII; a bracket at the end is looked for by itself.
cdef tuple TAIL_HINTS = ()
cdef enum:
    MAX_HINTS = 64
cdef const char *HINT[MAX_HINTS]
cdef Py_ssize_t HINT_LENGTH[MAX_HINTS]
cdef int num_hints = 0
cdef bint BEGINS_HINT[128 * 128]  # by their first two letters


def set_tail_hints(hints):
    """What the end of a text holds, in lower case, where a tail may be cut off. Once, before any text is judged."""
    global TAIL_HINTS, num_hints
    cdef int c
    TAIL_HINTS = tuple([hint.encode() for hint in hints if hint.isascii()])
    if len(TAIL_HINTS) > MAX_HINTS:
        raise ValueError("too many hints")
    if any(len(hint) < 2 for hint in TAIL_HINTS):
        raise ValueError("a hint needs two letters")
    for c in range(128 * 128):
        BEGINS_HINT[c] = False
    num_hints = 0
    for hint in TAIL_HINTS:
        HINT[num_hints], HINT_LENGTH[num_hints] = hint, len(hint)
        BEGINS_HINT[128 * <unsigned char>HINT[num_hints][0] + <unsigned char>HINT[num_hints][1]] = True
        num_hints += 1


cdef class Words:
    """Words in small ASCII letters, each with a number above 0."""

    cdef uint64_t *hashes
    cdef uint32_t *starts
    cdef unsigned char *lengths
    cdef uint32_t *numbers
    cdef bytes held
    cdef const char *letters
    cdef Py_ssize_t mask
    cdef Py_ssize_t longest

    def __cinit__(self, words):
        cdef Py_ssize_t size = 16, place, start = 0
        cdef uint64_t key
        known = sorted(words)
        while size < 4 * len(known):
            size *= 2
        self.mask = size - 1
        self.hashes = <uint64_t *>calloc(size, sizeof(uint64_t))
        self.starts = <uint32_t *>calloc(size, sizeof(uint32_t))
        self.lengths = <unsigned char *>calloc(size, 1)
        self.numbers = <uint32_t *>calloc(size, sizeof(uint32_t))
        if not (self.hashes and self.starts and self.lengths and self.numbers):
            raise MemoryError
        self.held = "".join(known).encode("ascii")
        self.letters = self.held
        self.longest = max(map(len, known), default=0)
        if self.longest >= MAX_LETTERS:
            raise ValueError("a word is too long")
        for word in known:
            key = hash_of(self.letters + start, len(word))
            place = key & self.mask
            while self.lengths[place]:
                place = (place + 1) & self.mask
            self.hashes[place], self.starts[place] = key, <uint32_t>start
            self.lengths[place], self.numbers[place] = <unsigned char>len(word), words[word]
            start += len(word)

    def __dealloc__(self):
        free(self.hashes)
        free(self.starts)
        free(self.lengths)
        free(self.numbers)

    cdef uint32_t find(self, const char *word, Py_ssize_t length) noexcept:
        """A word's number; 0 where it is none of them."""
        cdef uint64_t key
        cdef Py_ssize_t place
        if length < 1 or length > self.longest:
            return 0
        key = hash_of(word, length)
        place = key & self.mask
        while self.lengths[place]:
            if self.hashes[place] == key and self.lengths[place] == length:
                if memcmp(self.letters + self.starts[place], word, length) == 0:
                    return self.numbers[place]
            place = (place + 1) & self.mask
        return 0


cdef inline uint64_t hash_of(const char *word, Py_ssize_t length) noexcept:
    cdef uint64_t key = 14695981039346656037ULL
    cdef Py_ssize_t i
    for i in range(length):
        key = (key ^ <unsigned char>word[i]) * 1099511628211ULL
    return key ^ (key >> 29)


cdef struct Token:
    const char *text
    Py_ssize_t length
    const char *core  # without signs about it, in small letters; NULL if that has more than letters
    Py_ssize_t core_length
    bint is_alpha
    bint is_lower
    bint is_upper
    bint is_title
    bint is_known  # as it stands
    bint is_core_known
    bint is_piece  # whether its core can be a part of a word


def doubts(str text, Py_ssize_t max_chars, Words known, Words instructing, Words stems):
    """The steps that could change a text or find something in it, as bits; 0 where none can.

    `known` are common words, 1, or 2 where one is of grammar; `instructing` words that instructions have, and `stems`
    those that may have any ending, each with a bit for its kinds.
    """
    cdef Py_ssize_t length = 0
    cdef const char *chars
    cdef int found
    if not PyUnicode_IS_ASCII(text):
        return rewritten
    chars = PyUnicode_AsUTF8AndSize(text, &length)
    if length == 0:
        return 0
    if length > max_chars:
        return rewritten
    found = signs_of(chars, length)
    if found & rewritten:
        return found
    return found | words_of(chars, length, known, instructing, stems)


cdef int signs_of(const char *text, Py_ssize_t length) noexcept:
    """What single signs and their neighbours say."""
    cdef Py_ssize_t i
    cdef unsigned char c, after
    cdef int found = 0
    if text[0] == 32 or text[length - 1] == 32:
        return rewritten
    for i in range(length):
        c = <unsigned char>text[i]
        if c < 32 or c > 126:
            return rewritten
        if KIND[c] & LETTER:
            continue
        after = <unsigned char>text[i + 1]  # the end is a zero
        if c == 32:
            if after == 32:
                return rewritten
        elif c == 92:  # a backslash
            return rewritten
        elif c == 93 and (after == 40 or after == 58):  # ]( and ]:
            return rewritten
        elif c == 91 and after == 47:  # [/
            return rewritten
        elif c == 60 and may_open_tag(text + i + 1):
            return rewritten
        elif c == 38 and may_be_entity(text + i + 1):
            return rewritten
        if i and KIND[<unsigned char>text[i - 1]] & LETTER and KIND[after] & LETTER:
            if c in (48, 49, 51, 52, 53, 55, 64, 36, 33):  # 013457@$!
                found |= ciphers
    if text[length - 1] == 41 or holds_hint(text, length):  # a bracket
        found |= tail
    return found


cdef inline bint is_name_char(unsigned char c) noexcept:
    return (KIND[c] & (LETTER | DIGIT)) != 0 or c == 95


cdef bint may_open_tag(const char *at) noexcept:
    """Whether what follows '<' may be a comment or a tag: `_OPENING` of `markup`, without its bounds."""
    if at[0] == 33 or at[0] == 63:
        return True
    if at[0] == 47:
        at += 1
    if not KIND[<unsigned char>at[0]] & LETTER:
        return False
    while KIND[<unsigned char>at[0]] & (LETTER | DIGIT):
        at += 1
    if at[0] == 45 or at[0] == 58:
        at += 1
        while is_name_char(<unsigned char>at[0]) or at[0] == 45:
            at += 1
    return at[0] == 32 or at[0] == 47 or at[0] == 62


cdef bint may_be_entity(const char *at) noexcept:
    """Whether what follows '&' may name a character."""
    if at[0] == 35:
        return True
    while KIND[<unsigned char>at[0]] & (LETTER | DIGIT):
        at += 1
    return at[0] == 59


cdef bint holds_hint(const char *text, Py_ssize_t length) noexcept:
    cdef Py_ssize_t i, j
    cdef int hint
    cdef unsigned char after
    cdef Py_ssize_t start = length - 700 if length > 700 else 0
    for i in range(start, length):
        after = <unsigned char>LOWER[<unsigned char>text[i + 1]]  # the end is a zero
        if not BEGINS_HINT[128 * <unsigned char>LOWER[<unsigned char>text[i]] + after]:
            continue
        for hint in range(num_hints):
            if HINT_LENGTH[hint] > length - i:
                continue
            for j in range(HINT_LENGTH[hint]):
                if LOWER[<unsigned char>text[i + j]] != HINT[hint][j]:
                    break
            else:
                return True
    return False


cdef int words_of(
    const char *text, Py_ssize_t length, Words known, Words instructing, Words stems
) noexcept:
    """What words and their neighbours say."""
    cdef Token tokens[MAX_TOKENS]
    cdef char lowered[MAX_CHARS]
    cdef Py_ssize_t num = 0, start = 0, i
    cdef int found = 0
    if length >= MAX_CHARS:
        return rewritten
    for i in range(length):
        lowered[i] = LOWER[<unsigned char>text[i]]
    lowered[length] = 0
    for i in range(length + 1):
        if i == length or text[i] == 32:
            if num == MAX_TOKENS:
                return rewritten
            read_token(&tokens[num], text, lowered, start, i, known)
            num += 1
            start = i + 1
    if may_hold_codes(text, length, tokens, num):
        found |= codes
    if length > MAX_DECIPHERED or has_unknown_run(tokens, num, known, instructing, stems):
        found |= ciphers
    if has_fragments(tokens, num, known) or has_separated(text, length) or has_joined(text, lowered, length, known):
        found |= split
    return found


cdef void read_token(
    Token *token, const char *text, const char *lowered, Py_ssize_t start, Py_ssize_t end, Words known
) noexcept:
    cdef Py_ssize_t i
    cdef uint32_t number
    cdef Py_ssize_t num_upper = 0, num_letters = 0
    cdef unsigned char kind
    token.text, token.length = text + start, end - start
    for i in range(start, end):
        kind = KIND[<unsigned char>text[i]]
        num_letters += (kind & LETTER) != 0
        num_upper += (kind & UPPER) != 0
    token.is_alpha = num_letters == end - start
    token.is_lower = num_letters > 0 and num_upper == 0
    token.is_upper = num_letters > 0 and num_upper == num_letters
    token.is_title = token.is_alpha and num_upper == 1 and KIND[<unsigned char>text[start]] & UPPER
    token.is_known = num_upper == 0 and known.find(text + start, end - start) != 0
    while start < end and KIND[<unsigned char>text[start]] & STRIPPED:
        start += 1
    while end > start and KIND[<unsigned char>text[end - 1]] & STRIPPED:
        end -= 1
    token.core, token.core_length, token.is_core_known, token.is_piece = NULL, 0, False, False
    if start == end or num_letters != end - start:
        return
    token.core, token.core_length = lowered + start, end - start
    number = known.find(token.core, token.core_length)
    token.is_core_known = number != 0
    token.is_piece = number == 0 or (token.core_length <= 4 and number == PLAIN)


cdef bint may_hold_codes(const char *text, Py_ssize_t length, Token *tokens, Py_ssize_t num) noexcept:
    """As `_may_hold_codes` of `encodings`."""
    cdef Py_ssize_t i, run = 0, num_short = 0
    cdef const char *at
    cdef unsigned char c, one, two
    for i in range(num):
        at = tokens[i].text
        c = <unsigned char>at[0]
        if KIND[c] & DIGIT or c == 46 or c == 45 or c == 95:
            num_short += 1
        elif tokens[i].length == 2 and KIND[c] & HEX and KIND[<unsigned char>at[1]] & HEX:
            num_short += 1
    if num_short >= 6:
        return True
    for i in range(length):
        c = <unsigned char>text[i]
        if is_name_char(c) or c == 43 or c == 47:
            run += 1
            if run == 16:
                return True
            if c == 85 and text[i + 1] == 43:
                one = <unsigned char>text[i + 2]
                if KIND[one] & DIGIT or 65 <= one <= 70:
                    return True
            continue
        run = 0
        one = <unsigned char>text[i + 1]
        two = <unsigned char>text[i + 2] if one else 0
        if c == 37 and KIND[one] & HEX and KIND[two] & HEX:
            return True
        if c == 61 and KIND[one] & HEX and KIND[two] & HEX:
            return True
        if c == 35 and (KIND[one] & DIGIT or (one == 120 and KIND[two] & DIGIT)):
            return True
    return False


cdef bint has_unknown_run(
    Token *tokens, Py_ssize_t num, Words known, Words instructing, Words stems
) noexcept:
    """As `_ciphered_texts` of `encodings`: whether a run of unknown words may be a cipher."""
    cdef Py_ssize_t i, num_strange = 0, run = 0
    cdef Token *one
    for i in range(num):
        one = &tokens[i]
        num_strange += one.length > 2 and not one.is_known and (one.is_lower or one.is_upper)
    if num_strange < 3:
        return False
    for i in range(num):
        one = &tokens[i]
        if not run and one.is_known:
            continue
        if one.core != NULL and (not one.is_core_known or (run and one.core_length <= 2)):
            run += 1
            continue
        if run >= 4 and may_be_cipher(&tokens[i - run], run, known, instructing, stems):
            return True
        run = 0
    return run >= 4 and may_be_cipher(&tokens[num - run], run, known, instructing, stems)


cdef bint may_be_cipher(Token *tokens, Py_ssize_t num, Words known, Words instructing, Words stems) noexcept:
    """Whether a run of words makes known ones, or words of instructions unless they are names, when its letters are
    shifted, mirrored or turned.
    """
    cdef char word[MAX_LETTERS]
    cdef Py_ssize_t i, j, length, num_lower = 0, num_letters
    cdef uint32_t kinds
    cdef int way, letter, num_kinds
    for i in range(num):
        num_lower += tokens[i].is_lower
        if tokens[i].core_length >= MAX_LETTERS:
            return True
    for way in range(1, 28):  # so many letters on; then mirrored, then backwards
        num_letters, kinds = 0, 0
        for i in range(num):
            length = tokens[i].core_length
            for j in range(length):
                letter = tokens[i].core[j] - 97
                if way < 26:
                    word[j] = <char>(97 + (letter + way) % 26)
                elif way == 26:
                    word[j] = <char>(97 + 25 - letter)
                else:
                    word[length - 1 - j] = <char>(97 + letter)
            if length >= 3 and known.find(word, length) != 0:
                num_letters += length
            kinds |= instructing.find(word, length)
            for j in range(1, min(length, stems.longest) + 1):
                kinds |= stems.find(word, j)
        if num_letters >= 8:
            return True
        num_kinds = 0
        while kinds:
            kinds &= kinds - 1
            num_kinds += 1
        if num_kinds >= MIN_KINDS and 2 * num_lower >= num:
            return True
    return False


cdef bint has_fragments(Token *tokens, Py_ssize_t num, Words known) noexcept:
    """As `_join_fragments` of `splitting`: whether any neighbours would be joined."""
    cdef Py_ssize_t at, first
    cdef Token *one
    if num < 2:
        return False
    for at in range(num):
        one = &tokens[at]
        if not one.is_lower or one.is_known or one.core == NULL or one.is_core_known:
            continue
        for first in range(at - 3 if at > 3 else 0, at + 1):
            if makes_word(tokens, num, first, at, known):
                return True
    return False


cdef bint makes_word(Token *tokens, Py_ssize_t num, Py_ssize_t first, Py_ssize_t at, Words known) noexcept:
    """As `_num_of_one_word` of `splitting`: whether tokens from `first` on, beyond `at`, are pieces of one word."""
    cdef char word[MAX_LETTERS]
    cdef Py_ssize_t length = 0, more
    cdef Token *one = &tokens[first]
    if not one.is_alpha or not (one.is_lower or one.is_title) or one.core == NULL or not one.is_piece:
        return False
    for more in range(4):
        if first + more >= num:
            return False
        one = &tokens[first + more]
        if more and (one.core == NULL or not one.is_lower or not begins_with_letter(one) or not one.is_piece):
            return False
        if length + one.core_length > known.longest:
            return False
        memcpy(word + length, one.core, one.core_length)
        length += one.core_length
        if more and first + more + 1 > at and length >= 5 and known.find(word, length) != 0:
            return True
        if one.core_length != one.length:
            return False
    return False


cdef inline bint begins_with_letter(Token *one) noexcept:
    return (KIND[<unsigned char>one.text[0]] & LETTER) != 0


cdef bint has_separated(const char *text, Py_ssize_t length) noexcept:
    """Whether `_SEPARATED` or `_THREE` of `splitting` could match: single letters with one sign between them."""
    cdef Py_ssize_t i, sign, gap
    cdef const char *at
    for i in range(length - 4):
        if not KIND[<unsigned char>text[i]] & LETTER or not KIND[<unsigned char>text[i + 1]] & JOINT:
            continue
        if i and KIND[<unsigned char>text[i - 1]] & (LETTER | DIGIT):
            continue
        at = text + i
        if LOWER[<unsigned char>at[0]] == 98 and LOWER[<unsigned char>at[2]] == 117:
            if LOWER[<unsigned char>at[4]] == 121 and at[1] == at[3]:
                return True
        for sign in range(1, 4):
            gap = sign + 1
            if i + 3 * gap >= length or not all_joints(at + 1, sign):
                break
            if not (
                KIND[<unsigned char>at[gap]] & (LETTER | DIGIT)
                and KIND[<unsigned char>at[2 * gap]] & (LETTER | DIGIT)
                and KIND[<unsigned char>at[3 * gap]] & (LETTER | DIGIT)
            ):
                continue
            if memcmp(at + 1, at + gap + 1, sign) == 0 and memcmp(at + 1, at + 2 * gap + 1, sign) == 0:
                return True
    return False


cdef bint all_joints(const char *at, Py_ssize_t num) noexcept:
    cdef Py_ssize_t i
    for i in range(num):
        if not KIND[<unsigned char>at[i]] & JOINT:
            return False
    return True


cdef bint has_joined(const char *text, const char *lowered, Py_ssize_t length, Words known) noexcept:
    """Whether `_INSIDE` or `_LEET` of `splitting` could make a word of a run of letters, signs and digits."""
    cdef Py_ssize_t i = 0, start
    cdef bint has_letters, has_sign, has_leet
    cdef unsigned char kind
    while i < length:
        start = i
        has_letters = has_sign = has_leet = False
        while i < length and text[i] != 32:
            kind = KIND[<unsigned char>text[i]]
            has_letters = has_letters or kind & LETTER
            has_sign = has_sign or kind & INNER
            has_leet = has_leet or kind & LEET
            i += 1
        if has_letters and has_sign and may_be_broken(text, lowered, start, i, known):
            return True
        if has_letters and has_leet and may_be_leetspeak(text, start, i, known):
            return True
        i += 1
    return False


cdef bint may_be_broken(
    const char *text, const char *lowered, Py_ssize_t start, Py_ssize_t end, Words known
) noexcept:
    """Whether a token holds letters with signs between them that are a word together. With other signs than dots and
    underlines, which stand in no name, it may.
    """
    cdef char word[MAX_LETTERS]
    cdef Py_ssize_t i, first, length
    cdef unsigned char c, kind
    i = start
    while i < end:
        kind = KIND[<unsigned char>text[i]]
        if not kind & LETTER:
            i += 1
            continue
        first = i
        length = 0
        while i < end:
            c = <unsigned char>text[i]
            if KIND[c] & LETTER:
                if length < MAX_LETTERS:
                    word[length] = lowered[i]
                length += 1
            elif c != 46 and c != 95:
                if KIND[c] & INNER and i + 1 < end:
                    return True
                break
            i += 1
        if length == i - first or not KIND[<unsigned char>text[i - 1]] & LETTER:
            continue  # letters alone, or a sign at the end
        if 4 <= length <= known.longest and known.find(word, length) != 0:
            return True
    return False


cdef bint may_be_leetspeak(const char *text, Py_ssize_t start, Py_ssize_t end, Words known) noexcept:
    """Whether a part of a token, from where `_LEET` may begin to where it may end, reads as a word."""
    cdef Py_ssize_t first, last
    cdef unsigned char c
    for first in range(start, end - 3):
        c = <unsigned char>text[first]
        if not KIND[c] & (LETTER | LEET):
            continue
        if first > start:
            c = <unsigned char>text[first - 1]
            if is_name_char(c) or c == 36 or c == 64 or c == 46:
                continue
        for last in range(first, end):
            c = <unsigned char>text[last]
            if not KIND[c] & (LETTER | LEET) or last - first == 20:
                break
            if last - first < 3:
                continue
            c = <unsigned char>text[last + 1]
            if is_name_char(c) or c == 64 or c == 37:
                continue
            if reads_as_word(text + first, last + 1 - first, known):
                return True
    return False


cdef bint reads_as_word(const char *at, Py_ssize_t length, Words known) noexcept:
    """As `_read_leetspeak` of `splitting`, without its exceptions."""
    cdef char word[24]
    cdef Py_ssize_t i, num_letters = 0
    while length and at[length - 1] == 33:
        length -= 1
    for i in range(length):
        num_letters += (KIND[<unsigned char>at[i]] & LETTER) != 0
    if length < 4 or num_letters == length or num_letters < 2 or 2 * num_letters < length:
        return False
    for i in range(length):
        word[i] = LETTERED[<unsigned char>at[i]]
    if known.find(word, length) != 0:
        return True
    for i in range(length):
        word[i] = LETTERED_L[<unsigned char>at[i]]
    return known.find(word, length) != 0

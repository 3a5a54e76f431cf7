# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Says in one pass over a text which checks of `manipulation` could find something in it.

Every check has words or signs without which it finds nothing; the linear model of wording is worked out, with the bits
of `wording_model`. Only ASCII is judged. The checks that are named examine the text themselves, and decide.
`tests/property/test_sanitising_compiled.py` compares the two.
"""

from libc.math cimport log2, sqrt
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeASCII(const char *text, Py_ssize_t size, const char *errors)

EVERY, ORDER, WORDED, FIRST_PATTERN = 1, 2, 4, 8  # checks; a pattern each from the last on
cdef enum:
    every = 1
    order = 2
    worded = 4
    first_pattern = 8

cdef enum:
    MAX_CHARS = 16384
    MAX_TOKENS = 2_900  # below the bounds of the checks, so that they see all of a text
    MAX_PIECES = 2_900
    UNKNOWN = 1 << 30  # beyond all kinds
    MAX_LANGUAGES = 16
    MAX_PATTERNS = 24
    NUM_PLACES = 1 << 16  # of tokens by their hashes
    MAX_HELD = 1 << 15  # tokens; then all are forgotten
    IS_WORD = 1
    IS_KNOWN = 2
    CALLS = 4
    IS_END = 8  # of a sentence, as `wording_model` divides
    IS_LOUD_END = 16  # ! and ?, which count as words first
    IS_FOREIGN = 32
    MIN_WORDS = 2
    SHORT = 8
    MAX_WORDS = 48
    USUAL_WORDS = 80

cdef double MIN_KNOWN = 0.45
cdef double FOR_LENGTH = 0.25
cdef double ROUNDING = 0.001  # log-odds are compared rounded

cdef struct Rest:  # a word that must follow
    char *text
    Py_ssize_t length
    bint is_stem  # it may have any ending

cdef struct Entry:  # of the lexicon, which begins with a token
    int language
    uint32_t kind
    int num_rest
    Rest *rest

cdef struct Piece:  # of a text, as the lexicon divides it
    const char *text
    Py_ssize_t length

cdef struct Token:
    char *text
    Py_ssize_t length
    uint64_t key
    int word  # number of the word that the model counts it as; −1 for one of no pair
    int flags
    double order
    double pump
    uint32_t marks
    uint32_t seen_in
    uint32_t *kinds  # by language, those of entries to which it may belong; NULL for none
    int num_entries
    Entry *entries

cdef struct Sentence:
    double order
    double pump
    int num
    int num_words
    int num_known
    bint calls

cdef struct Judged:  # the sentence before, and the best so far
    double order
    double pump
    int num
    bint is_english
    bint calls
    double best_order
    double best_pump


cdef inline bint is_letter(unsigned char c) noexcept:
    return 97 <= c <= 122


cdef inline bint is_digit(unsigned char c) noexcept:
    return 48 <= c <= 57


cdef inline uint64_t mixed(uint64_t key) noexcept:
    key ^= key >> 33
    key *= 0xff51afd7ed558ccdULL
    return key ^ (key >> 33)


cdef class Screen:
    """What the checks look for, by token; tokens are described when they are first met."""

    cdef object describe
    cdef Token *tokens
    cdef Py_ssize_t num_held
    cdef uint32_t turn
    cdef uint64_t *pair_keys
    cdef double *pair_weights
    cdef Py_ssize_t pair_mask
    cdef double biases[2]
    cdef int start_word
    cdef int num_languages
    cdef int shared
    cdef uint32_t drop, rules, prior, you, value, strong, field, role, answer, system, reader, name, act, command
    cdef uint32_t here, only, machine, header, must, report, call, sure, tip, rich, urgent

    def __cinit__(self, describe, pairs, biases, int start_word, int num_patterns, kinds, int num_languages, int shared):
        """`describe` gives a token's (word, flags, order, pump, marks, ((language, kinds), …), entries) with the
        entries that begin with it as (language, kind, words that follow); `pairs` are (word, word, order, pump) of
        neighbours; `marks` have a bit for each of the patterns of which a token is a hint;
        `kinds` the bit of each kind.
        """
        cdef Py_ssize_t size = 16, place
        cdef uint64_t key
        self.describe = describe
        self.tokens = <Token *>calloc(NUM_PLACES, sizeof(Token))
        while size < 4 * len(pairs):
            size *= 2
        self.pair_mask = size - 1
        self.pair_keys = <uint64_t *>calloc(size, sizeof(uint64_t))
        self.pair_weights = <double *>calloc(2 * size, sizeof(double))
        if not (self.tokens and self.pair_keys and self.pair_weights):
            raise MemoryError
        for one, other, left, right in pairs:
            key = pair_key(one, other)
            place = mixed(key) & self.pair_mask
            while self.pair_keys[place]:
                place = (place + 1) & self.pair_mask
            self.pair_keys[place] = key
            self.pair_weights[2 * place], self.pair_weights[2 * place + 1] = left, right
        self.biases[0], self.biases[1] = biases
        self.start_word = start_word
        self.num_languages, self.shared = num_languages, shared
        if num_languages > MAX_LANGUAGES or num_patterns > MAX_PATTERNS or len(kinds) > 30:
            raise ValueError("too many languages or patterns")
        self.drop, self.rules, self.prior, self.you = kinds["drop"], kinds["rules"], kinds["prior"], kinds["you"]
        self.value, self.strong, self.field = kinds["value"], kinds["strong"], kinds["field"]
        self.role, self.answer, self.system = kinds["role"], kinds["answer"], kinds["system"]
        self.reader, self.name, self.act = kinds["reader"], kinds["name"], kinds["act"]
        self.command, self.here, self.only = kinds["command"], kinds["here"], kinds["only"]
        self.machine, self.header, self.must = kinds["machine"], kinds["header"], kinds["must"]
        self.report, self.call, self.sure = kinds["report"], kinds["call"], kinds["sure"]
        self.tip, self.rich, self.urgent = kinds["tip"], kinds["rich"], kinds["urgent"]

    def __dealloc__(self):
        if self.tokens:
            self.forget()
        free(self.tokens)
        free(self.pair_keys)
        free(self.pair_weights)

    cdef void forget(self) noexcept:
        cdef Py_ssize_t place
        for place in range(NUM_PLACES):
            forget_token(&self.tokens[place])
        memset(self.tokens, 0, NUM_PLACES * sizeof(Token))
        self.num_held = 0

    def doubts(self, str text, double order_at, double pump_at, list sentences):
        """The checks that could find something in a text, as bits; 0 where none can. Log-odds count from these on.

        What may be an order goes into `sentences`, by where it starts and ends.
        """
        cdef Py_ssize_t length = 0, i = 0, end
        cdef const char *given
        cdef char lowered[MAX_CHARS]
        cdef unsigned char c
        cdef uint32_t kinds[MAX_LANGUAGES]
        cdef uint32_t marks = 0, every_kind
        cdef Sentence sentence
        cdef Judged judged
        cdef Token *token
        cdef int num = 0, num_foreign = 0, before, language, found
        cdef double allowance = 0.0
        if not PyUnicode_IS_ASCII(text):
            return every
        given = PyUnicode_AsUTF8AndSize(text, &length)
        if length >= MAX_CHARS:
            return every
        for i in range(length):
            c = <unsigned char>given[i]
            if (c < 32 and c != 10) or c > 126 or c == 95 or c == 123:  # underlines join words; braces hold answers
                return every
            lowered[i] = <char>(c + 32 if 65 <= c <= 90 else c)
        lowered[length] = 0
        memset(kinds, 0, sizeof(kinds))
        memset(&sentence, 0, sizeof(sentence))
        memset(&judged, 0, sizeof(judged))
        judged.best_order = judged.best_pump = -9.0
        before = self.start_word
        self.turn += 1
        i = 0
        while i < length:
            end = end_of_token(lowered, i, length)
            if end > i:
                num += 1
                token = self.token(lowered + i, end - i)
                marks |= token.marks
                if token.flags & IS_FOREIGN and token.seen_in != self.turn:
                    num_foreign += 1
                token.seen_in = self.turn
                if token.kinds:
                    for language in range(self.num_languages):
                        kinds[language] |= token.kinds[language]
                before = self.read(token, before, &sentence, &judged)
                i = end
            else:
                i += 1
        if num > MAX_TOKENS or self.may_report(kinds):
            return every
        every_kind = self.mark(lowered, length, sentences)
        if every_kind == UNKNOWN or (self.may_pump(kinds) and self.may_entice(every_kind)):
            return every
        found = first_pattern * marks | (order if sentences else 0)
        if num_foreign < (3 if num < 40 else num // 10):
            self.judge(&sentence, &judged)
            if num > USUAL_WORDS:
                allowance = FOR_LENGTH * log2(<double>num / USUAL_WORDS)
            if judged.best_order - allowance + ROUNDING >= order_at:
                found |= worded
            elif judged.best_pump - allowance + ROUNDING >= pump_at:
                found |= worded
        return found

    cdef uint32_t mark(self, const char *text, Py_ssize_t length, list sentences) except? UNKNOWN:
        """The kinds of all entries in a text, as `marked_sentences` of `phrase_lexicon` finds them; `UNKNOWN` of a text
        that is too long. Sentences that may be orders go into `sentences`.
        """
        cdef Piece pieces[MAX_PIECES]
        cdef uint32_t here[MAX_LANGUAGES]
        cdef uint32_t found = 0
        cdef Py_ssize_t i = 0, start = 0
        cdef int num = 0, at, first = 0, language
        cdef unsigned char c
        while i <= length:
            c = <unsigned char>text[i]
            if c == 46 or c == 33 or c == 63 or c == 59 or i == length:  # . ! ? ;
                if num - first > 1:
                    memset(here, 0, sizeof(here))
                    for at in range(first, num):
                        self.mark_piece(pieces, at, num, here)
                    for language in range(self.num_languages):
                        found |= here[language]
                    if self.may_order(here):
                        sentences.append((start, i))
                i += 1
                start, first = i, num
                continue
            if c == 32 or c == 10 or is_elision(text, i):
                i += 1
                continue
            if num == MAX_PIECES:
                return UNKNOWN
            pieces[num].text = text + i
            i += 1
            if is_letter(c):
                while is_letter(<unsigned char>text[i]):
                    i += 1
            elif is_digit(c):
                while is_digit(<unsigned char>text[i]) or (
                    (text[i] == 46 or text[i] == 44) and is_digit(<unsigned char>text[i + 1])
                ):
                    i += 1
            pieces[num].length = text + i - pieces[num].text
            num += 1
        return found

    cdef int mark_piece(self, Piece *pieces, int at, int num, uint32_t *here) except -1:
        """Add the kinds of the entries that begin at a piece."""
        cdef Token *token = self.token(pieces[at].text, pieces[at].length)
        cdef Entry *entry
        cdef Rest *rest
        cdef Piece *piece
        cdef int i, j
        for i in range(token.num_entries):
            entry = &token.entries[i]
            if at + 1 + entry.num_rest > num:
                continue
            for j in range(entry.num_rest):
                rest, piece = &entry.rest[j], &pieces[at + 1 + j]
                if piece.length < rest.length or (piece.length > rest.length and not rest.is_stem):
                    break
                if memcmp(piece.text, rest.text, rest.length) != 0:
                    break
            else:
                here[entry.language] |= entry.kind
        return 0

    cdef Token *token(self, const char *text, Py_ssize_t length) except NULL:
        cdef uint64_t key = 14695981039346656037ULL
        cdef Py_ssize_t i, place
        cdef Token *found
        cdef int language
        for i in range(length):
            key = (key ^ <unsigned char>text[i]) * 1099511628211ULL
        place = mixed(key) & (NUM_PLACES - 1)
        while self.tokens[place].text:
            found = &self.tokens[place]
            if found.key == key and found.length == length and memcmp(found.text, text, length) == 0:
                return found
            place = (place + 1) & (NUM_PLACES - 1)
        if self.num_held == MAX_HELD:
            self.forget()
            place = mixed(key) & (NUM_PLACES - 1)
        described = self.describe(PyUnicode_DecodeASCII(text, length, NULL))
        word, flags, left, right, marks, by_language, entries = described
        found = &self.tokens[place]
        found.kinds = NULL
        if by_language:
            found.kinds = <uint32_t *>calloc(MAX_LANGUAGES, sizeof(uint32_t))
            if not found.kinds:
                raise MemoryError
            for language, kinds in by_language:
                found.kinds[language] |= kinds
        found.word, found.flags, found.order, found.pump, found.marks = word, flags, left, right, marks
        found.num_entries, found.entries = 0, NULL
        if entries:
            read_entries(found, entries)
        found.key, found.length, found.seen_in = key, length, 0
        found.text = <char *>malloc(length)
        if not found.text:
            raise MemoryError
        memcpy(found.text, text, length)
        self.num_held += 1
        return found

    cdef int read(self, Token *token, int before, Sentence *sentence, Judged *judged) noexcept:
        """Count a token for its sentence; the word before the next one."""
        cdef Py_ssize_t place
        cdef uint64_t key
        if token.flags & IS_END or sentence.num >= MAX_WORDS:
            self.judge(sentence, judged)
            before = self.start_word
            if token.flags & IS_END:
                return before
        if token.flags & IS_WORD:
            sentence.num_words += 1
            sentence.num_known += (token.flags & IS_KNOWN) != 0
        if token.flags & CALLS:
            sentence.calls = True
        cdef double left = 0.0, right = 0.0
        if token.word >= 0 and before >= 0:
            key = pair_key(before, token.word)
            place = mixed(key) & self.pair_mask
            while self.pair_keys[place]:
                if self.pair_keys[place] == key:
                    left, right = self.pair_weights[2 * place], self.pair_weights[2 * place + 1]
                    break
                place = (place + 1) & self.pair_mask
        sentence.order += token.order + left
        sentence.pump += token.pump + right
        sentence.num += 1
        if token.flags & IS_LOUD_END:
            self.judge(sentence, judged)
            return self.start_word
        return token.word

    cdef void judge(self, Sentence *sentence, Judged *judged) noexcept:
        """As `max_log_odds` of `wording_model` of one sentence, which is then begun anew."""
        cdef int num = sentence.num, both
        cdef bint is_english = sentence.num_words > 0 and sentence.num_known >= MIN_KNOWN * sentence.num_words
        cdef double norm
        if num >= MIN_WORDS and is_english:
            norm = sqrt(<double>(2 * num))
            judged.best_order = most(judged.best_order, self.biases[0] + sentence.order / norm)
            if sentence.calls:
                judged.best_pump = most(judged.best_pump, self.biases[1] + sentence.pump / norm)
        if judged.num and num and (judged.num if judged.num < num else num) < SHORT:
            if is_english or judged.is_english:
                both = num + judged.num
                norm = sqrt(<double>(2 * both))
                judged.best_order = most(
                    judged.best_order, self.biases[0] + (sentence.order + judged.order) / norm
                )
                if sentence.calls or judged.calls:
                    judged.best_pump = most(judged.best_pump, self.biases[1] + (sentence.pump + judged.pump) / norm)
        if num:
            judged.order, judged.pump, judged.num = sentence.order, sentence.pump, num
            judged.is_english, judged.calls = is_english, sentence.calls
        memset(sentence, 0, sizeof(Sentence))

    cdef bint may_order(self, uint32_t *here) noexcept:
        """As `_may_order` of `prompt_injection`, of one sentence in each language."""
        cdef int language
        cdef uint32_t of_all = here[self.shared], k
        cdef bint acts
        for language in range(self.num_languages):
            if not here[language]:
                continue
            k = here[language] | of_all
            if k & self.drop and k & self.rules and k & (self.prior | self.you):
                return True
            if not k & (self.value | self.strong | self.field | self.role):
                continue
            if k & (self.role | self.answer | self.system | self.reader | self.name):
                return True
            acts = k & (self.act | self.command) != 0
            if acts and k & (self.here | self.only):
                return True
            if not k & (self.machine | self.you):
                continue
            if k & self.header or (acts and k & (self.must | self.command)):
                return True
        return False

    cdef bint may_report(self, uint32_t *kinds) noexcept:
        """Whether a text may report attacks on machines, as `find_injection` of `prompt_injection` asks."""
        cdef int language
        cdef uint32_t k
        for language in range(self.num_languages):
            k = kinds[language] | kinds[self.shared]
            if k & self.report and k & (self.reader | self.name | self.machine | self.drop):
                return True
        return False

    cdef bint may_pump(self, uint32_t *kinds) noexcept:
        """Whether a text may call to trade, as `pump_call_strength` of `manipulation` asks first."""
        cdef int language
        cdef uint32_t k
        for language in range(self.num_languages):
            k = kinds[language] | kinds[self.shared]
            if k & self.call and k & (self.sure | self.tip | self.rich):
                return True
        return False

    cdef bint may_entice(self, uint32_t k) noexcept:
        """Whether a call stands beside a promise, or beside two of a tip, riches and a hurry."""
        if not k & self.call:
            return False
        if k & self.sure:
            return True
        return ((k & self.tip) != 0) + ((k & self.rich) != 0) + ((k & self.urgent) != 0) >= 2


cdef inline uint64_t pair_key(int one, int other) noexcept:
    return (<uint64_t>(<uint32_t>one) << 32 | <uint32_t>other) + 1


cdef inline double most(double one, double other) noexcept:
    return other if other > one else one


cdef int read_entries(Token *token, entries) except -1:
    """Keep the entries that begin with a token."""
    cdef Entry *entry
    cdef Rest *rest
    cdef bytes word
    token.entries = <Entry *>calloc(len(entries), sizeof(Entry))
    if not token.entries:
        raise MemoryError
    token.num_entries = len(entries)
    for number, (language, kind, following) in enumerate(entries):
        entry = &token.entries[number]
        entry.language, entry.kind, entry.num_rest = language, kind, len(following)
        entry.rest = <Rest *>calloc(max(len(following), 1), sizeof(Rest))
        if not entry.rest:
            raise MemoryError
        for place, text in enumerate(following):
            rest = &entry.rest[place]
            rest.is_stem = text.endswith("*")
            word = text.removesuffix("*").encode()
            rest.length = len(word)
            rest.text = <char *>malloc(max(len(word), 1))
            if not rest.text:
                raise MemoryError
            memcpy(rest.text, <const char *>word, len(word))
    return 0


cdef void forget_token(Token *token) noexcept:
    cdef int i, j
    for i in range(token.num_entries):
        for j in range(token.entries[i].num_rest):
            free(token.entries[i].rest[j].text)
        free(token.entries[i].rest)
    free(token.entries)
    free(token.kinds)
    free(token.text)


cdef inline bint is_elision(const char *text, Py_ssize_t at) noexcept:
    """Whether what stands between two letters joins words: ' and -."""
    if (text[at] != 39 and text[at] != 45) or not at:
        return False
    return is_letter(<unsigned char>text[at - 1]) and is_letter(<unsigned char>text[at + 1])


cdef Py_ssize_t end_of_token(const char *text, Py_ssize_t at, Py_ssize_t length) noexcept:
    """Where the token ends that `wording_model.tokens` finds at a place; the place itself where there is none."""
    cdef Py_ssize_t end = at
    cdef unsigned char c = <unsigned char>text[at]
    if c == 104 and length - at > 7 and memcmp(text + at, b"http", 4) == 0:
        end = at + 5 if text[at + 4] == 115 else at + 4
        if memcmp(text + end, b"://", 3) == 0 and end + 3 < length and text[end + 3] != 32 and text[end + 3] != 10:
            while end < length and text[end] != 32 and text[end] != 10:
                end += 1
            return end
        end = at
    if is_letter(c) or ((c == 64 or c == 35 or c == 36) and is_letter(<unsigned char>text[at + 1])):
        end += 1
        while is_letter(<unsigned char>text[end]):
            end += 1
        if text[end] == 39 and is_letter(<unsigned char>text[end + 1]):
            end += 1
            while is_letter(<unsigned char>text[end]):
                end += 1
        return end
    if is_digit(c):
        while is_digit(<unsigned char>text[end]) or text[end] == 46 or text[end] == 44 or text[end] == 58:
            end += 1
        if text[end] == 37 or text[end] == 120 or text[end] == 107 or text[end] == 104:
            end += 1
        return end
    if c == 33 or c == 63:
        while text[end] == 33 or text[end] == 63:
            end += 1
        return end
    if c == 46 or c == 58:
        return at + 1 if at + 1 == length or text[at + 1] == 32 or text[at + 1] == 10 else at
    if c == 10:
        return at + 1
    if c in (32, 44, 59, 39, 34, 40, 41, 45, 47, 38):  # blank , ; ' " ( ) - / &
        return at
    return at + 1


def may_hold_template(str raw):
    """Whether a text may hold the marks of a chat template or of a tool call; only ASCII is judged."""
    cdef Py_ssize_t length = 0, i, j
    cdef const char *text
    cdef unsigned char c, after
    cdef bint begins_line = True
    if not PyUnicode_IS_ASCII(raw):
        return True
    text = PyUnicode_AsUTF8AndSize(raw, &length)
    for i in range(length):
        c = <unsigned char>text[i]
        after = <unsigned char>text[i + 1]
        if c == 60:  # <
            if after == 124 or after == 60:
                return True
            j = i + 2 if after == 47 else i + 1
            while text[j] == 95 or text[j] == 58 or is_letter(text[j] | 32) or is_digit(text[j]):
                j += 1
            while text[j] == 32 or 9 <= text[j] <= 13 or 28 <= text[j] <= 31:
                j += 1
            if text[j] == 62:
                return True
        elif c == 91 and (after == 47 or after | 32 == 105 or after | 32 == 115):  # [/ [i [s
            return True
        elif (c == 35 or c == 96) and after == c:  # ## ``
            return True
        elif c == 34 and length - i > 5 and is_same(text + i + 1, b"role\"", 5):
            return True
        elif c | 32 == 98 and length - i > 5 and is_same(text + i, b"begin_", 6):
            return True
        if begins_line and c != 32 and not 9 <= c <= 13 and not 28 <= c <= 31:
            begins_line = False
            if (
                is_same(text + i, b"system", 6)
                or is_same(text + i, b"assistant", 9)
                or is_same(text + i, b"human", 5)
                or is_same(text + i, b"developer", 9)
            ):
                return True
        if c == 10:
            begins_line = True
    return False


cdef bint is_same(const char *text, const char *word, Py_ssize_t length) noexcept:
    """Whether a text goes on with a word in small letters, in whatever case; it ends in a zero."""
    cdef Py_ssize_t i
    for i in range(length):
        if text[i] | 32 != word[i] and text[i] != word[i]:
            return False
    return True

# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Finds in one pass over a text which of all patterns may match in it, and at which words, compiled.

Every word of every set that a pattern needs (`prefilter`) or begins with (`pattern_starts`) is a path in one tree of
letters; a text walks it word by word and marks the sets that it meets. Where no compiler was at hand `scanning.py` asks
for the needed words alone; `tests/property/test_facts_compiled.py` and `test_prefilter.py` compare what is found.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport (
    PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ,
    Py_UNICODE_TOLOWER,
)
from libc.string cimport memset

from htfi.narrative.letters cimport is_decimal, is_word

cdef enum:
    NUM_LETTERS = 6  # by which words are known
    MAX_LENGTH = 12  # of words that are known by their length alone
    NUM_KEPT = 16  # texts whose scans are kept
    MAX_PLACES = 64  # in a buffer of the stack

cdef struct Node:
    unsigned int letter
    int parent
    int next  # of the same hash
    int whole  # the first entry of sets that hold the word that ends here, or goes on behind the sixth letter
    int open  # the same of words that begin so

cdef struct Entry:
    int set
    int next

cdef struct Hit:
    int set
    int start


cdef inline unsigned int small(unsigned int char) noexcept:
    """The letter in small, as `re` takes it where case is ignored."""
    if 65 <= char <= 90:
        return char + 32
    if char < 128:
        return char
    if char == 0x130 or char == 0x131:
        return 105  # i
    if char == 0x17F:
        return 115  # s
    return Py_UNICODE_TOLOWER(char)


cdef class Scan:
    """What one text holds: the sets that it meets, and where words of sets stand that matches begin with."""

    cdef str text
    cdef int num_sets  # that were known when it was made
    cdef unsigned char *has
    cdef Hit *hits
    cdef int num_hits, max_hits, max_sets

    def __cinit__(self):
        self.text = None
        self.num_sets = self.num_hits = self.max_hits = self.max_sets = 0
        self.has = NULL
        self.hits = NULL

    def __dealloc__(self):
        PyMem_Free(self.has)
        PyMem_Free(self.hits)


cdef class WordIndex:
    """All sets of words, and the newest scans. Sets are added at any time; scans from before are made again."""

    cdef Node *nodes
    cdef Entry *entries
    cdef int *first  # node by hash
    cdef unsigned char *is_placed  # by set: whether the places of its words are kept
    cdef int num_nodes, max_nodes, num_entries, max_entries, mask, num_sets, max_sets
    cdef int digit_needed, digit_starts  # entries of sets with any digit, of sets with words that begin with one
    cdef int long[MAX_LENGTH + 1]  # by number of letters: entries of sets with every word of so many or more
    cdef int shortest  # number of letters of which there are such sets
    cdef list scans
    cdef int newest
    cdef dict known

    def __cinit__(self):
        self.max_nodes, self.max_entries, self.max_sets = 1 << 15, 1 << 14, 1 << 10
        self.mask = (1 << 16) - 1
        self.nodes = <Node *> PyMem_Malloc(self.max_nodes * sizeof(Node))
        self.entries = <Entry *> PyMem_Malloc(self.max_entries * sizeof(Entry))
        self.first = <int *> PyMem_Malloc((self.mask + 1) * sizeof(int))
        self.is_placed = <unsigned char *> PyMem_Malloc(self.max_sets)
        if self.nodes == NULL or self.entries == NULL or self.first == NULL or self.is_placed == NULL:
            raise MemoryError
        memset(self.first, 0xFF, (self.mask + 1) * sizeof(int))
        self.num_nodes = 1  # the root
        self.nodes[0] = Node(0, -1, -1, -1, -1)
        self.num_entries = self.num_sets = 0
        self.digit_needed = self.digit_starts = -1
        for length in range(MAX_LENGTH + 1):
            self.long[length] = -1
        self.shortest = MAX_LENGTH + 1
        self.scans = [Scan() for _ in range(NUM_KEPT)]
        self.newest = 0
        self.known = {}

    def __dealloc__(self):
        PyMem_Free(self.nodes)
        PyMem_Free(self.entries)
        PyMem_Free(self.first)
        PyMem_Free(self.is_placed)

    cdef inline int child(self, int parent, unsigned int letter) noexcept:
        cdef int at = self.first[hashed(parent, letter) & self.mask]
        while at >= 0:
            if self.nodes[at].letter == letter and self.nodes[at].parent == parent:
                return at
            at = self.nodes[at].next
        return -1

    cdef int grown(self, int parent, unsigned int letter) except -1:
        cdef int at = self.child(parent, letter)
        cdef int place
        cdef Node *more
        if at >= 0:
            return at
        if self.num_nodes == self.max_nodes:
            more = <Node *> PyMem_Realloc(self.nodes, 2 * self.max_nodes * sizeof(Node))
            if more == NULL:
                raise MemoryError
            self.nodes = more
            self.max_nodes *= 2
        place = hashed(parent, letter) & self.mask
        at = self.num_nodes
        self.nodes[at] = Node(letter, parent, self.first[place], -1, -1)
        self.first[place] = at
        self.num_nodes += 1
        return at

    cdef int entered(self, int number, int following) except -1:
        cdef Entry *more
        if self.num_entries == self.max_entries:
            more = <Entry *> PyMem_Realloc(self.entries, 2 * self.max_entries * sizeof(Entry))
            if more == NULL:
                raise MemoryError
            self.entries = more
            self.max_entries *= 2
        self.entries[self.num_entries] = Entry(number, following)
        self.num_entries += 1
        return self.num_entries - 1

    cdef int set_of(self, frozenset words, bint is_placed) except -1:
        """The number of a set of words; `is_placed` where it must be known where they stand."""
        cdef int number, node
        cdef str word
        cdef Py_ssize_t at, length
        cdef bint is_open
        cdef unsigned char *more
        key = (words, is_placed)
        found = self.known.get(key)
        if found is not None:
            return found
        if self.num_sets == self.max_sets:
            more = <unsigned char *> PyMem_Realloc(self.is_placed, 2 * self.max_sets)
            if more == NULL:
                raise MemoryError
            self.is_placed = more
            self.max_sets *= 2
        number = self.num_sets
        self.is_placed[number] = is_placed
        for word in words:
            if word == "#":
                if is_placed:
                    self.digit_starts = self.entered(number, self.digit_starts)
                else:
                    self.digit_needed = self.entered(number, self.digit_needed)
                continue
            if word[0] == "@":
                length = int(word[1:])
                self.long[length] = self.entered(number, self.long[length])
                self.shortest = min(self.shortest, <int> length)
                continue
            length = len(word)
            is_open = word[length - 1] == "*"
            node = 0
            for at in range(length - is_open):
                node = self.grown(node, ord(word[at]))
            if is_open:
                self.nodes[node].open = self.entered(number, self.nodes[node].open)
            else:
                self.nodes[node].whole = self.entered(number, self.nodes[node].whole)
        self.num_sets += 1
        self.known[key] = number
        return number

    cdef int marked(self, Scan scan, int entry, int start) except -1:
        """Marks the sets of a chain of entries."""
        cdef int number
        cdef Hit *more
        while entry >= 0:
            number = self.entries[entry].set
            scan.has[number] = 1
            if self.is_placed[number]:
                if scan.num_hits == scan.max_hits:
                    more = <Hit *> PyMem_Realloc(scan.hits, (2 * scan.max_hits + 256) * sizeof(Hit))
                    if more == NULL:
                        raise MemoryError
                    scan.hits = more
                    scan.max_hits = 2 * scan.max_hits + 256
                scan.hits[scan.num_hits] = Hit(number, start)
                scan.num_hits += 1
            entry = self.entries[entry].next
        return 0

    cdef Scan scan_of(self, str text):
        cdef Scan scan
        cdef int turn
        for turn in range(NUM_KEPT):
            scan = <Scan> self.scans[(self.newest - turn) & (NUM_KEPT - 1)]
            if scan.text is text and scan.num_sets == self.num_sets:
                return scan
        self.newest = (self.newest + 1) & (NUM_KEPT - 1)
        scan = <Scan> self.scans[self.newest]
        scan.text = None  # until it is whole
        self.fill(scan, text)
        scan.text = text
        return scan

    cdef int fill(self, Scan scan, str text) except -1:
        cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text), at = 0, start
        cdef int kind = PyUnicode_KIND(text)
        cdef void *data = PyUnicode_DATA(text)
        cdef int node, depth
        cdef bint has_digit = False
        cdef unsigned int char
        cdef unsigned char *more
        if scan.max_sets < self.num_sets:
            more = <unsigned char *> PyMem_Realloc(scan.has, self.max_sets)
            if more == NULL:
                raise MemoryError
            scan.has = more
            scan.max_sets = self.max_sets
        if self.num_sets:
            memset(scan.has, 0, self.num_sets)
        scan.num_sets = self.num_sets
        scan.num_hits = 0
        while at < length:
            char = PyUnicode_READ(kind, data, at)
            if not is_word(char):
                at += 1
                continue
            start = at
            node, depth = 0, 0
            if self.digit_starts >= 0 and is_decimal(char):
                self.marked(scan, self.digit_starts, start)
            while True:
                if is_decimal(char):
                    has_digit = True
                if node >= 0 and depth < NUM_LETTERS:
                    node = self.child(node, small(char))
                    depth += 1
                    if node >= 0:
                        if self.nodes[node].open >= 0:
                            self.marked(scan, self.nodes[node].open, start)
                        if depth == NUM_LETTERS and self.nodes[node].whole >= 0:
                            self.marked(scan, self.nodes[node].whole, start)
                at += 1
                if at == length:
                    break
                char = PyUnicode_READ(kind, data, at)
                if not is_word(char):
                    break
            for depth in range(self.shortest, min(at - start, MAX_LENGTH) + 1):
                if self.long[depth] >= 0:
                    self.marked(scan, self.long[depth], start)
            if node > 0 and at - start < NUM_LETTERS and self.nodes[node].whole >= 0:
                self.marked(scan, self.nodes[node].whole, start)
        if has_digit and self.digit_needed >= 0:
            self.marked(scan, self.digit_needed, 0)
        return 0


cdef inline unsigned int hashed(int parent, unsigned int letter) noexcept:
    cdef unsigned int mixed = <unsigned int> parent * 0x9E3779B1u + letter * 0x85EBCA77u
    return mixed ^ (mixed >> 15)


cdef WordIndex INDEX = WordIndex()


cdef class WordFilter:
    """One pattern: the sets that it needs, and the set of words that its matches begin with."""

    cdef int needed[3]
    cdef int num_needed, starts
    cdef object compiled, pattern, match

    def __init__(self, needed, starts, compiled):
        """`needed` are at most three sets of words, `starts` a set or None; `compiled` gives the compiled pattern."""
        self.num_needed = 0
        for words in needed:
            self.needed[self.num_needed] = INDEX.set_of(words, False)
            self.num_needed += 1
        self.starts = -1 if starts is None else INDEX.set_of(starts, True)
        self.compiled, self.pattern, self.match = compiled, None, None

    cdef int prepare(self) except -1:
        if self.pattern is None:
            self.pattern = self.compiled()
            self.match = self.pattern.match
        return 0

    cdef inline bint passes(self, Scan scan) noexcept:
        cdef int place
        for place in range(self.num_needed):
            if not scan.has[self.needed[place]]:
                return False
        return self.starts < 0 or scan.has[self.starts]

    cpdef bint may_match(self, str text):
        """Whether a text has the words without which the pattern matches nowhere in it."""
        return self.passes(INDEX.scan_of(text))

    cpdef object search(self, str text):
        """What `search` of the pattern finds."""
        cdef Scan scan = INDEX.scan_of(text)
        if not self.passes(scan):
            return None
        self.prepare()
        if self.starts < 0:
            return self.pattern.search(text)
        cdef int buffer[MAX_PLACES]
        cdef int num = 0, at
        for at in range(scan.num_hits):
            if scan.hits[at].set == self.starts:
                if num == MAX_PLACES:
                    return next(iter(self.finditer(text)), None)
                buffer[num] = scan.hits[at].start
                num += 1
        for at in range(num):
            found = self.match(text, buffer[at])
            if found is not None:
                return found
        return None

    def match_first(self, str text):
        """What `match` of the pattern finds at the beginning of a text."""
        cdef Scan scan = INDEX.scan_of(text)
        cdef int at
        if self.passes(scan):
            self.prepare()
            if self.starts < 0:
                return self.match(text)
            for at in range(scan.num_hits):
                if scan.hits[at].start > 0:
                    break
                if scan.hits[at].set == self.starts:
                    return self.match(text, 0)
        return None

    def finditer(self, str text, int start=0):
        """What `finditer` of the pattern finds from a place on."""
        cdef Scan scan = INDEX.scan_of(text)
        cdef list found = []
        if not self.passes(scan):
            return found
        self.prepare()
        if self.starts < 0:
            return self.pattern.finditer(text, start)
        cdef list places = []
        cdef int at, end = start
        for at in range(scan.num_hits):
            if scan.hits[at].set == self.starts:
                places.append(scan.hits[at].start)
        for place in places:
            if place >= end:
                match = self.match(text, place)
                if match is not None:
                    found.append(match)
                    end = match.end()
        return found


def filters_that_pass(list filters, str text):
    """The places of those of several filters whose words a text has, rising."""
    cdef Scan scan = INDEX.scan_of(text)
    cdef list found = []
    cdef Py_ssize_t place
    for place in range(len(filters)):
        if (<WordFilter> filters[place]).passes(scan):
            found.append(place)
    return found


def any_filter_passes(list filters, str text):
    """Whether a text has the words of any of several filters."""
    cdef Scan scan = INDEX.scan_of(text)
    cdef Py_ssize_t place
    for place in range(len(filters)):
        if (<WordFilter> filters[place]).passes(scan):
            return True
    return False

"""Says which checks of `manipulation` could find something in a text, in one compiled pass over it.

In nearly all news none can. The checks that are named examine the text themselves and alone decide: what they find does
not depend on this. Where nothing was compiled, and for what is not ASCII, all are named.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from htfi.narrative.sanitising import compiled
from htfi.narrative.sanitising.phrase_lexicon import (
    EVERYWHERE,
    entries_of_word,
    kinds_of_word,
    languages_and_kinds,
    may_be_marked,
)
from htfi.narrative.sanitising.wording_model import START, TokenWeights, WordingWeights, token_weights

_IS_WORD, _IS_KNOWN, _CALLS, _IS_END, _IS_LOUD_END, _IS_FOREIGN = (1 << bit for bit in range(6))

# A token's number, flags, log-odds, marks, (language, kinds) of entries to which it may belong, and the entries that
# begin with it, as language, kind and the words that follow.
Traits = tuple[
    int, int, float, float, int, Sequence[tuple[int, int]], Sequence[tuple[int, int, Sequence[str]]]
]


class PossibleChecks(NamedTuple):
    """What could find something: where `is_every`, all there is; else orders within these `sentences` (from, to), the
    model of wording, and patterns by their names.
    """

    is_every: bool
    sentences: Sequence[tuple[int, int]] = ()
    is_worded: bool = False
    patterns: Sequence[str] = ()


_EVERY = PossibleChecks(True)


class CheckChooser:
    """Knows for each token what it may be part of."""

    def __init__(
        self,
        weights: WordingWeights,
        patterns: Mapping[str, Collection[str]],
        foreign: Collection[str],
    ) -> None:
        """`patterns` are hints by the name of a pattern, which is tried on texts that hold one of them; `foreign`
        are the words by which a text is known not to be English.
        """
        self._weights, self._foreign = weights, foreign
        self._words: dict[str, int] = {START: 0}
        pairs: list[tuple[int, int, float, float]] = []
        for name, (order, pump) in weights.of.items():
            first, blank, second = name.partition(" ")
            numbers = [
                self._words.setdefault(word, len(self._words)) for word in (first, second)[: 1 + len(blank)]
            ]
            if blank:
                pairs.append((numbers[0], numbers[1], order, pump))
        self._names = tuple(patterns)
        self._marks: dict[str, int] = {}
        for number, hints in enumerate(patterns.values()):
            for word in hints:
                self._marks[word] = self._marks.get(word, 0) | 1 << number
        languages, kinds = languages_and_kinds()
        self._languages = {language: number for number, language in enumerate(languages)}
        self._kinds = {kind: 1 << number for number, kind in enumerate(kinds)}
        self._pairs = pairs

    @cached_property
    def _screen(self) -> Any:
        return compiled.wording.Screen(
            self._traits,
            self._pairs,
            self._weights.biases,
            self._words[START],
            len(self._names),
            self._kinds,
            len(self._languages),
            self._languages[EVERYWHERE],
        )

    def possible(self, text: str, order_at: float, pump_at: float) -> PossibleChecks | None:
        """The checks that could find something in a text, whose log-odds count from these on; None where none can."""
        core = compiled.wording
        if core is None:
            return _EVERY
        sentences: list[tuple[int, int]] = []
        doubts = self._screen.doubts(text, order_at, pump_at, sentences)
        if not doubts:
            return None
        if doubts & core.EVERY:
            return _EVERY
        patterns = [name for number, name in enumerate(self._names) if doubts & core.FIRST_PATTERN << number]
        return PossibleChecks(False, sentences, doubts & core.WORDED != 0, patterns)

    def _traits(self, token: str) -> Traits:
        """What compiled code asks of a token when it first meets it."""
        known = token_weights(token, self._weights)
        flags, marks = self._flags(token, known), self._marks.get(token, 0)
        number = self._words.get(known.word, -1)
        if not may_be_marked(token):
            return number, flags, *known.weights, marks, (), ()
        kinds = [(self._languages[language], self._kinds[kind]) for language, kind in kinds_of_word(token)]
        entries = [
            (self._languages[language], self._kinds[kind], rest)
            for language, kind, rest in entries_of_word(token)
            if all(map(str.isascii, rest))
        ]
        return number, flags, *known.weights, marks, kinds, entries

    def _flags(self, token: str, known: TokenWeights) -> int:
        flags = (
            _IS_WORD * known.is_word
            | _IS_KNOWN * known.is_known
            | _CALLS * known.calls
            | _IS_END * known.ends
        )
        return flags | _IS_LOUD_END * (known.word in ("!", "?")) | _IS_FOREIGN * (token in self._foreign)


def may_hold_template(raw: str) -> bool:
    """Whether a text may hold the marks of a chat template; true where it is not known."""
    return compiled.wording is None or compiled.wording.may_hold_template(raw)

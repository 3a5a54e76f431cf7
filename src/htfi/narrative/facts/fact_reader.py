"""Reads texts into facts: the network sees the headline and the body's most relevant passages, code counts."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.text_reading import TextReader
from htfi.narrative.facts.bodies import MAX_PASSAGES, ReadPassage, is_quoted, with_body
from htfi.narrative.facts.extraction import (
    MAX_TEXT_CHARS,
    FactNetwork,
    FactScores,
    extract_facts,
    with_policy_action,
)
from htfi.narrative.facts.passages.facts import PassageFacts, read_passage
from htfi.narrative.facts.passages.quotations import find_quotations
from htfi.narrative.facts.passages.selection import Passage, most_relevant
from htfi.narrative.facts.record import NewsFacts

_MAX_KEPT = 1_024  # texts whose facts are kept: wires repeat headlines, stories their paragraphs

Asked = tuple[str, str]  # symbol and name
NOTHING_ASKED: Asked = ("", "")
MaxPassages = Callable[[int, NewsFacts], int]  # of the body at a place, from the facts of its headline


def _all_passages(place: int, facts: NewsFacts) -> int:
    del place, facts
    return MAX_PASSAGES


_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(NewsFacts)


def encode_facts(facts: NewsFacts) -> bytes:
    """The facts of a headline for a `TextReading`."""
    return _ENCODER.encode(facts)


def decode_facts(facts: bytes) -> NewsFacts:
    """The facts that `encode_facts` wrote."""
    return _DECODER.decode(facts)


class BodyReading(NamedTuple):
    """The facts of a headline with its body: `alone` those without any passage, `whole` with the `passages`, whose own
    facts these are.
    """

    alone: NewsFacts
    whole: NewsFacts
    passages: tuple[PassageFacts, ...]


_Facts = TypeVar("_Facts", NewsFacts, PassageFacts)


class _Kept(Generic[_Facts]):
    """The facts of the newest texts, by text and whom it is asked for."""

    def __init__(self) -> None:
        self._facts: OrderedDict[bytes, _Facts] = OrderedDict()  # by digest, newest last

    def keep(self, text: str, asked: Asked, facts: _Facts) -> None:
        self._facts[_digest(text, asked)] = facts

    def begin(
        self,
        texts: Sequence[tuple[str, Asked]],
        read: Callable[[Sequence[tuple[str, Asked]]], Iterable[_Facts]],
    ) -> Callable[[], dict[tuple[str, Asked], _Facts]]:
        """What gives the facts of each text by itself, for whom it is asked: `read` begins now with those that are not
        kept, and other cores go on meanwhile.
        """
        by_key = {one: _digest(*one) for one in texts}
        found = {one: self._facts[key] for one, key in by_key.items() if key in self._facts}
        unread = [one for one in by_key if one not in found]
        reading = read(unread)

        def finish() -> dict[tuple[str, Asked], _Facts]:
            found.update(zip(unread, reading, strict=True))
            for one, key in by_key.items():
                self._facts[key] = found[one]
                self._facts.move_to_end(key)
            while len(self._facts) > _MAX_KEPT:
                self._facts.popitem(last=False)
            return found

        return finish


class FactReader:
    """Texts to facts, in order. The same text gives the same facts, whatever the batch."""

    def __init__(
        self,
        network: FactNetwork | None,
        linker: EntityLinker,
        headlines: TextReader | None = None,
    ) -> None:
        """Without a network, code alone reads, and bodies count for what central banks decided alone.

        `headlines` has read headlines already, for others too, with the same network and names.
        """
        self._network, self._linker, self._headlines = network, linker, headlines
        self.version = "" if network is None else network.version
        self._headlines_kept, self._passages_kept = _Kept[NewsFacts](), _Kept[PassageFacts]()

    def read(
        self, texts: Sequence[str], bodies: Sequence[str] = (), asked: Sequence[Asked] = ()
    ) -> list[NewsFacts]:
        """One record per headline, with all of the body below it that may be read, where there is one. The others as
        in `begin`. Raises: DependencyUnavailable.
        """
        return [one.whole for one in self.begin(texts, bodies, asked=asked)()]

    def begin(
        self,
        texts: Sequence[str],
        bodies: Sequence[str] = (),
        max_passages: MaxPassages = _all_passages,
        asked: Sequence[Asked] = (),
    ) -> Callable[[], list[BodyReading]]:
        """What gives one reading per headline, once it is called: headlines are read now, in one batch, the passages of
        the bodies below them are chosen, and other cores read these meanwhile.

        `max_passages` says how many passages of a body the network may read, given the facts of its headline; '' is no
        body. `asked` are symbol and name of what is asked about, per headline; '' where nothing is. Raises:
        DependencyUnavailable, as what it gives does.
        """
        bodies = bodies or [""] * len(texts)
        asked = asked or [NOTHING_ASKED] * len(texts)
        headlines = self._read_headlines([text[:MAX_TEXT_CHARS] for text in texts], asked)
        chosen: list[tuple[Passage, ...]] = []
        without: list[NewsFacts] = []
        for place, (facts, body) in enumerate(zip(headlines, bodies, strict=True)):
            chosen.append(self._passages(facts, body, place, max_passages))
            without.append(with_policy_action(facts, body))
        reading = self._passages_kept.begin(
            [(_clipped(one), whom) for of_body, whom in zip(chosen, asked, strict=True) for one in of_body],
            self._extract_passages,
        )

        def finish() -> list[BodyReading]:
            below = reading()
            joined: list[BodyReading] = []
            for alone, body, passages, whom in zip(without, bodies, chosen, asked, strict=True):
                quotations = find_quotations(body) if passages else []
                read = [
                    ReadPassage(one, below[_clipped(one), whom], is_quoted(one, quotations))
                    for one in passages
                ]
                joined.append(BodyReading(alone, with_body(alone, read), tuple(one.facts for one in read)))
            return joined

        return finish

    @property
    def linker(self) -> EntityLinker:
        """What finds the names that a text holds."""
        return self._linker

    def linked_symbols(self, text: str) -> tuple[str, ...]:
        """The symbols of what a text names."""
        return self._linker.link(text)

    def keep_passage(self, facts: PassageFacts) -> None:
        """Keep the facts of a passage that was read elsewhere, for when it is asked for."""
        self._passages_kept.keep(facts.text, NOTHING_ASKED, facts)

    def _read_headlines(self, texts: Sequence[str], asked: Sequence[Asked]) -> list[NewsFacts]:
        known: dict[str, NewsFacts] = {}
        if self._headlines is not None:
            of_all = [text for text, whom in zip(texts, asked, strict=True) if whom == NOTHING_ASKED]
            readings = zip(of_all, self._headlines.read(of_all), strict=True)
            known = {text: decode_facts(one.facts) for text, one in readings if one.facts}
        unknown = [
            one for one in zip(texts, asked, strict=True) if one[1] != NOTHING_ASKED or one[0] not in known
        ]
        found = self._headlines_kept.begin(unknown, self._extract_headlines)()
        return [
            found[text, whom] if (text, whom) in found else known[text]
            for text, whom in zip(texts, asked, strict=True)
        ]

    def _passages(
        self, facts: NewsFacts, body: str, place: int, max_passages: MaxPassages
    ) -> tuple[Passage, ...]:
        if self._network is None or not body:
            return ()
        num = max_passages(place, facts)
        if num <= 0:
            return ()
        return most_relevant(body, facts.text, self._names_in(facts.text), min(num, MAX_PASSAGES))

    def _names_in(self, text: str) -> Iterator[str]:
        """The names that a text holds, looked for when the first is asked for."""
        for one in self._linker.mentions(text):
            yield text[one.start : one.end]

    def _extract_headlines(self, texts: Sequence[tuple[str, Asked]]) -> Iterable[NewsFacts]:
        for (text, whom), scores in zip(texts, self._scores(texts), strict=True):
            yield extract_facts(text, scores, self._linker, self.version, whom)

    def _extract_passages(self, texts: Sequence[tuple[str, Asked]]) -> Iterable[PassageFacts]:
        return (
            read_passage(text, scores, self._linker, whom)
            for (text, whom), scores in zip(texts, self._scores(texts), strict=True)  # which begins to read
            if scores is not None
        )

    def _scores(self, texts: Sequence[tuple[str, Asked]]) -> Iterable[FactScores | None]:
        """What the network says of each text, for whom it is asked. Raises: DependencyUnavailable."""
        if self._network is None or not texts:
            return [None] * len(texts)
        return self._network.read([text for text, _ in texts])


def _digest(text: str, asked: Asked) -> bytes:
    """Of what a text is kept under."""
    return hashlib.blake2b("\0".join((text, *asked)).encode(), digest_size=16).digest()


def _clipped(passage: Passage) -> str:
    return passage.text[:MAX_TEXT_CHARS]


def without_text(facts: NewsFacts) -> NewsFacts:
    """The facts without their text, for keeping."""
    return replace(facts, text="")

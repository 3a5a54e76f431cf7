"""Reads texts into facts: the network sees the headline and the body's most relevant passages, code counts."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.bodies import MAX_PASSAGES, ReadPassage, is_quoted, with_body
from htfi.narrative.facts.extraction import (
    MAX_TEXT_CHARS,
    FactNetwork,
    FactScores,
    extract_facts,
    with_policy_action,
)
from htfi.narrative.facts.passages.quotations import find_quotations
from htfi.narrative.facts.passages.selection import Passage, most_relevant
from htfi.narrative.facts.record import NewsFacts

_MAX_KEPT = 1_024  # texts whose facts are kept: wires repeat headlines, stories their paragraphs

Asked = tuple[str, str]  # symbol and name
_NOTHING: Asked = ("", "")


class FactReader:
    """Texts to facts, in order. The same text gives the same facts, whatever the batch."""

    def __init__(self, network: FactNetwork | None, linker: EntityLinker) -> None:
        """Without a network, code alone reads, and bodies count for what central banks decided alone."""
        self._network, self._linker = network, linker
        self.version = "" if network is None else network.version
        self._kept: OrderedDict[bytes, NewsFacts] = OrderedDict()  # by digest of the text, newest last

    def read(
        self,
        texts: Sequence[str],
        bodies: Sequence[str] = (),
        max_passages: Sequence[int] = (),
        asked: Sequence[Asked] = (),
    ) -> list[NewsFacts]:
        """One record per headline, with the body below it where there is one.

        `max_passages` says for each how many passages of its body the network may read, at most and by default
        `MAX_PASSAGES`; headlines and passages are read in one batch. `asked` are symbol and name of what is asked
        about, per headline; '' where nothing is. Raises: DependencyUnavailable.
        """
        texts = [text[:MAX_TEXT_CHARS] for text in texts]
        bodies = bodies or [""] * len(texts)
        asked = asked or [_NOTHING] * len(texts)
        budgets = max_passages or [MAX_PASSAGES] * len(texts)
        chosen = [
            self._passages(text, body, budget)
            for text, body, budget in zip(texts, bodies, budgets, strict=True)
        ]
        found = self._read_texts(
            [
                *zip(texts, asked, strict=True),
                *(
                    (_clipped(one), whom)
                    for of_body, whom in zip(chosen, asked, strict=True)
                    for one in of_body
                ),
            ]
        )
        joined: list[NewsFacts] = []
        for text, body, passages, whom in zip(texts, bodies, chosen, asked, strict=True):
            quotations = find_quotations(body) if passages else []
            read = [
                ReadPassage(one, found[_clipped(one), whom], is_quoted(one, quotations)) for one in passages
            ]
            joined.append(with_body(with_policy_action(found[text, whom], body), read))
        return joined

    def _passages(self, text: str, body: str, budget: int) -> tuple[Passage, ...]:
        if self._network is None or not body or budget <= 0:
            return ()
        names = {text[one.start : one.end] for one in self._linker.mentions(text)}
        return most_relevant(body, text, names, min(budget, MAX_PASSAGES))

    def _read_texts(self, texts: Sequence[tuple[str, Asked]]) -> dict[tuple[str, Asked], NewsFacts]:
        """The facts of each text by itself, for whom it is asked; those that were read of late are not read again."""
        by_key = {one: _digest(*one) for one in texts}
        found = {one: self._kept[key] for one, key in by_key.items() if key in self._kept}
        unread = [one for one in by_key if one not in found]
        scores: Sequence[FactScores | None] = [None] * len(unread)
        if self._network is not None and unread:
            scores = self._network.read([text for text, _ in unread])
        for (text, whom), one in zip(unread, scores, strict=True):
            found[text, whom] = extract_facts(text, one, self._linker, self.version, whom)
        for one, key in by_key.items():
            self._kept[key] = found[one]
            self._kept.move_to_end(key)
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return found


def _digest(text: str, asked: Asked) -> bytes:
    return hashlib.blake2b("\0".join((text, *asked)).encode(), digest_size=16).digest()


def _clipped(passage: Passage) -> str:
    return passage.text[:MAX_TEXT_CHARS]


def without_text(facts: NewsFacts) -> NewsFacts:
    """The facts without their text, for keeping."""
    return replace(facts, text="")

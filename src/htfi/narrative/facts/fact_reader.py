"""Reads texts into facts: the network sees, code counts."""

from collections.abc import Sequence

from msgspec.structs import replace

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import MAX_TEXT_CHARS, FactNetwork, extract_facts
from htfi.narrative.facts.record import NewsFacts


class FactReader:
    """Texts to facts, in order. The same text gives the same facts, whatever the batch."""

    def __init__(self, network: FactNetwork | None, linker: EntityLinker) -> None:
        """Without a network, code alone reads."""
        self._network, self._linker = network, linker
        self.version = "" if network is None else network.version

    def read(self, texts: Sequence[str], bodies: Sequence[str] = ()) -> list[NewsFacts]:
        """One record per headline, with the body below it where there is one. Raises: DependencyUnavailable."""
        texts = [text[:MAX_TEXT_CHARS] for text in texts]
        bodies = bodies or [""] * len(texts)
        scores = [None] * len(texts) if self._network is None or not texts else self._network.read(texts)
        return [
            extract_facts(text, one, self._linker, self.version, body)
            for text, one, body in zip(texts, scores, bodies, strict=True)
        ]


def without_text(facts: NewsFacts) -> NewsFacts:
    """The facts without their text, for keeping."""
    return replace(facts, text="")

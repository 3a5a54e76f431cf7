"""The words of a headline that counted, for a service: found once for each headline, whichever thread asks."""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

from htfi.domain.news import KeyPhrase
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.key_phrases import key_phrases
from htfi.wiring.facts import symbol_linker

_LOCK = Lock()  # what finds names belongs to one thread at a time


def phrases_of(headline: str, event: str, symbol: str, nats: Sequence[float] = ()) -> list[KeyPhrase]:
    """As `key_phrases` gives them, with the built-in names."""
    return list(_found(headline, event, symbol, tuple(nats)))


@lru_cache(maxsize=4096)
def _found(headline: str, event: str, symbol: str, nats: tuple[float, ...]) -> tuple[KeyPhrase, ...]:
    with _LOCK:
        return tuple(key_phrases(headline, _linker(), event, symbol, nats))


@lru_cache(maxsize=1)
def _linker() -> EntityLinker:
    return symbol_linker()

"""Screens every item of news before anything else sees it: pass, discount or quarantine, always with reasons (D11).

The news desk calls `screen` on each item in order of `available_at_ns`. The same items in the same order give the
same verdicts, on any machine and across a restart.
"""

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import Screened, Screening
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.text import clean


class Trouble(msgspec.Struct, frozen=True, gc=False):
    """An item was held back: from which source, on which symbols, by which rule, when it came."""

    source: str
    symbols: tuple[str, ...]
    rule: str
    at_ns: int


class Sanitiser:
    """What the sanitiser remembers between items, in bounded memory."""

    def __init__(self, config: SanitiserConfig | None = None) -> None:
        self._config = config or SanitiserConfig()
        self._clusters: OrderedDict[str, list[Any]] = OrderedDict()  # digest → first id, num_alike
        self._troubles: list[Trouble] = []
        self._invalidated: list[str] = []

    def screen(self, item: News) -> Screened:
        """The item cleaned, with a verdict and its reasons."""
        headline = clean(item.headline, self._config.max_headline_chars)
        body = clean(item.body, self._config.max_body_chars)
        cleaned = replace(item, headline=headline, body=body)
        digest = blake2b(f"{headline}\n{body}".encode(), digest_size=16).hexdigest()
        cluster = self._clusters.setdefault(digest, [item.id, 0])
        cluster[1] += 1
        if len(self._clusters) > self._config.max_items:
            self._clusters.popitem(last=False)
        if item.corrects:
            self._invalidated.append(item.corrects)
        return Screened(
            item=cleaned,
            verdict=Screening.PASS,
            trust=1.0,
            cluster=cluster[0],
            num_alike=cluster[1],
            digest=digest,
        )

    def learn(self, item_id: str, direction: float, return_sigmas: float) -> None:
        """What followed an item: the direction −1..1 that it was read as, and the return in standard deviations."""
        del item_id, direction, return_sigmas

    def standing(self, source: str) -> float:
        """How far a source is believed now, 0–1."""
        del source
        return 1.0

    def take_troubles(self) -> list[Trouble]:
        """Items held back since this was last asked."""
        taken, self._troubles = self._troubles, []
        return taken

    def invalidated(self) -> list[str]:
        """Ids of items that were corrected, taken back or contradicted since this was last asked."""
        taken, self._invalidated = self._invalidated, []
        return taken

    def state(self) -> dict[str, Any]:
        return {
            "clusters": [[digest, *cluster] for digest, cluster in self._clusters.items()],
            "troubles": [msgspec.to_builtins(trouble) for trouble in self._troubles],
            "invalidated": list(self._invalidated),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._clusters = OrderedDict((digest, [first, count]) for digest, first, count in state["clusters"])
        self._troubles = [msgspec.convert(trouble, Trouble) for trouble in state["troubles"]]
        self._invalidated = list(state["invalidated"])

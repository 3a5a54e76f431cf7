"""Which items tell the same story again, and which one told it first. The sanitiser asks it about each item.

Alike is not the same: an item that brings another figure, turns round what was said ("raises", "cuts", "denies") or
corrects itself is a new story, however few its words differ by. The first that could be believed is kept.
"""

from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.gist import CORRECTS, DENIES, Gist, side_of
from htfi.narrative.sanitising.likeness import bands, likeness, signature

_SHORT = 20  # words: where one name stands for another, little else differs
_MAX_VOICES = 16  # names remembered of those that told a story


class Telling(msgspec.Struct):
    """One item as it is remembered."""

    id: str
    source: str
    at_ns: int
    cluster: str
    signature: bytes
    figures: tuple[str, ...]
    names: tuple[str, ...]
    symbols: tuple[str, ...]
    way: int
    trust: float
    credit: float  # how far its source was believed
    feed: str = ""  # that it came through
    bands: tuple[int, ...] = ()


class Alike(NamedTuple):
    """`same` is an item that told the same, `near` the most alike of all, in how far (0–1)."""

    signature: bytes
    bands: tuple[int, ...]
    same: Telling | None
    near: Telling | None
    likeness: float


class Cluster(msgspec.Struct):
    """A story: how many tell it, by which names, and how many of them are remembered."""

    num_alike: int
    voices: list[str]
    num_kept: int
    believed: list[
        str
    ] = []  # independent ones among them that are, and the feeds of those that are not proven
    is_official: bool = False


class Duplicates:
    """Items of the last days, in bounded number, found again by what they share."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._tellings: OrderedDict[int, Telling] = OrderedDict()
        self._clusters: dict[str, Cluster] = {}
        self._by_band: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._next = 0

    def find(self, told: Gist, symbols: tuple[str, ...], now_ns: int) -> Alike:
        """What was told before that is like this."""
        self._expire(now_ns)
        signed = signature(told.words)
        near, most = None, 0.0
        same, most_same = None, 0.0
        keys = bands(signed)
        found = {self._by_band[key] for key in keys if key in self._by_band}
        for place in sorted(found, reverse=True):
            other = self._tellings[place]
            alike = likeness(signed, other.signature)
            if alike < self._config.near_alike:
                continue
            if alike > most:
                near, most = other, alike
            if alike > most_same and tells_same(other, told, symbols):
                same, most_same = other, alike
        return Alike(signed, keys, same, near, most)

    def keep(self, telling: Telling, believed: str = "", is_official: bool = False) -> Cluster:
        """Remember an item; its story, with this telling counted. `believed` names who bears it out, '' where nobody
        does; `is_official` where an official source does.
        """
        place, self._next = self._next, self._next + 1
        self._tellings[place] = telling
        self._by_id[telling.id] = place
        for band in telling.bands:
            self._by_band[band] = place
        cluster = self._clusters.get(telling.cluster)
        if cluster is None:
            cluster = self._clusters[telling.cluster] = Cluster(0, [], 0)
        cluster.num_alike += 1
        cluster.num_kept += 1
        if telling.source not in cluster.voices and len(cluster.voices) < _MAX_VOICES:
            cluster.voices.append(telling.source)
        if believed and believed not in cluster.believed and len(cluster.believed) < _MAX_VOICES:
            cluster.believed.append(believed)
        cluster.is_official = cluster.is_official or is_official
        if len(self._tellings) > self._config.max_items:
            self._drop()
        return cluster

    def cluster(self, name: str) -> Cluster | None:
        return self._clusters.get(name)

    def telling(self, name: str) -> Telling | None:
        """The item of that id, where it is remembered."""
        place = self._by_id.get(name)
        return None if place is None else self._tellings[place]

    def _expire(self, now_ns: int) -> None:
        oldest_ns = now_ns - self._config.window_ns
        while self._tellings and next(iter(self._tellings.values())).at_ns < oldest_ns:
            self._drop()

    def _drop(self) -> None:
        place, telling = self._tellings.popitem(last=False)
        for band in telling.bands:
            if self._by_band.get(band) == place:
                del self._by_band[band]
        if self._by_id.get(telling.id) == place:
            del self._by_id[telling.id]
        cluster = self._clusters[telling.cluster]
        cluster.num_kept -= 1
        if not cluster.num_kept:
            del self._clusters[telling.cluster]

    def state(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "tellings": [[place, *astuple(one)[:-1]] for place, one in self._tellings.items()],
            "clusters": [
                [
                    name,
                    one.num_alike,
                    list(one.voices),
                    one.num_kept,
                    list(one.believed),
                    one.is_official,
                ]
                for name, one in self._clusters.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._next = state["next"]
        self._tellings.clear()
        self._by_band.clear()
        self._by_id.clear()
        self._clusters = {name: Cluster(*rest) for name, *rest in state["clusters"]}
        for place, *told in state["tellings"]:
            telling = self._tellings[place] = _telling(told)
            self._by_id[telling.id] = place
            for band in telling.bands:
                self._by_band[band] = place


def _telling(told: list[Any]) -> Telling:
    name, source, at_ns, cluster, signed, figures, names, symbols, way, trust, credit, feed = told
    return Telling(
        name, source, at_ns, cluster, signed, tuple(figures), tuple(names), tuple(symbols), way, trust, credit,
        feed, bands(signed),
    )  # fmt: skip


def tells_same(earlier: Telling, told: Gist, symbols: tuple[str, ...]) -> bool:
    """Whether a text that is alike brings nothing that the earlier one did not say."""
    if told.figures.difference(earlier.figures):
        return False
    if (told.way ^ earlier.way) & (DENIES | CORRECTS) or told.side * side_of(earlier.way) < 0:
        return False
    if symbols and earlier.symbols and not set(symbols) & set(earlier.symbols):
        return False
    if len(told.words) >= _SHORT:
        return True
    return not (told.names.difference(earlier.names) and set(earlier.names).difference(told.words))

"""Scores screened items: encoded together, judged by heads, linked to symbols, compared with earlier items (novelty).

Novelty stores points as whole numbers, so that a likeness has the same bits on every machine and after a restart.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.news import TRUST_STEPS, NewsScores, ScreenedItem
from htfi.narrative.answer import CAUSES
from htfi.narrative.config import MAX_RECENT, RECENT_HALF_LIFE_NS
from htfi.narrative.encoding import compiled
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.text_reading import TextReader, TextReading, points_of

_SCALE = np.float32(
    254
)  # of a point of length 1, components beyond a half are cut to it: there are at most three
_MAX_COMPONENT = 127
_STEPS = 16  # a half-life in so many steps
_MAX_STEPS = 10 * _STEPS  # older items do not count
_DECAY = np.array(
    [round(TRUST_STEPS * 2.0 ** (-step / _STEPS)) for step in range(_MAX_STEPS)] + [0], np.int64
)
WHOLE_MARKET_SYMBOL = ""  # stands for the symbol of an item that has none


class NoveltyIndex:
    """Points of the last `max_recent` items, by the symbols they are about.

    The products of whole numbers up to 127 in `size` components stay below 2^24: float32 adds them exactly, in any
    order.
    """

    def __init__(self, size: int, max_recent: int, half_life_ns: int) -> None:
        if not 1 <= size <= 1024:
            raise InvalidInput(f"novelty: points of {size} components; 1 to 1024 can be compared exactly")
        self._points = np.zeros((max_recent, size), np.int8)
        self._lengths = np.ones(max_recent)
        self._read_ns = np.zeros(max_recent, np.int64)
        self._symbols: list[tuple[str, ...]] = [()] * max_recent
        self._places: dict[str, list[int]] = {}  # of each symbol, oldest first
        self._next = 0
        self._half_life_ns = half_life_ns
        self._step_ns = max(half_life_ns // _STEPS, 1)
        core = compiled.novelty
        arrays = (self._points, self._lengths, self._read_ns, _DECAY, self._step_ns)
        self._compiled = None if core is None else core.HeldPoints(*arrays)

    def measure(self, point: NDArray[np.float32], symbols: Iterable[str], at_ns: int) -> int:
        """Novelty in thousandths: 1000 − the largest likeness to an earlier item, decayed by its age; then the item is
        stored.
        """
        of = tuple(sorted(set(symbols))) or (WHOLE_MARKET_SYMBOL,)
        places = [self._places[symbol] for symbol in of if symbol in self._places]
        if self._compiled is not None and point.dtype == np.float32 and point.flags.c_contiguous:
            likest = self._compiled.likest(point, places, at_ns, self._next) // TRUST_STEPS
        else:
            whole = _as_whole(point)
            length = float(whole @ whole) ** 0.5 or 1.0
            likest = self._likest(whole, length, places, at_ns) // TRUST_STEPS
            self._hold(whole, length, at_ns)
        self._follow(of)
        return TRUST_STEPS - min(max(likest, 0), TRUST_STEPS)

    def _likest(
        self, whole: NDArray[np.float32], length: float, places: Sequence[Sequence[int]], at_ns: int
    ) -> int:
        """The largest likeness to the points at these places, decayed by their age, in thousandths of thousandths."""
        if not places:
            return 0
        joined = np.array([place for one in places for place in one], np.int64)
        products = self._points[joined].astype(np.float32) @ whole
        cosines = np.rint(products * (TRUST_STEPS / length) / self._lengths[joined]).astype(np.int64)
        ages = np.maximum(at_ns - self._read_ns[joined], 0)
        steps = np.minimum(ages // self._step_ns, _MAX_STEPS)
        return int((cosines * _DECAY[steps]).max())

    def state(self) -> dict[str, Any]:
        """Plain values, oldest item first; `restore` continues with the same novelties."""
        size = len(self._read_ns)
        order = [place for turn in range(size) if self._symbols[place := (self._next + turn) % size]]
        points = base64.b64encode(self._points[order].tobytes()).decode()
        return {
            "points": points,
            "read_ns": self._read_ns[order].tolist(),
            "symbols": [list(self._symbols[place]) for place in order],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises: InvalidInput, for a state that `state` did not give, or of points of another size."""
        size = self._points.shape[1]
        try:
            raw = base64.b64decode(state["points"], validate=True)
            points = np.frombuffer(raw, np.int8).reshape(-1, size)
            read_ns = [int(at_ns) for at_ns in state["read_ns"]]
            symbols = [tuple(map(str, of)) for of in cast("list[list[str]]", state["symbols"])]
            if not len(points) == len(read_ns) == len(symbols):
                raise ValueError(f"{len(points)} points of {len(symbols)} items")
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise InvalidInput(f"the state of novelty cannot be used: {error}") from error
        self.__init__(size, len(self._read_ns), self._half_life_ns)
        for point, at_ns, of in zip(points, read_ns, symbols, strict=True):
            whole = point.astype(np.float32)
            self._hold(whole, float(whole @ whole) ** 0.5 or 1.0, at_ns)
            self._follow(of)

    def _hold(self, whole: NDArray[np.float32], length: float, at_ns: int) -> None:
        """Put an item's point in the place of the oldest."""
        place = self._next
        self._points[place], self._lengths[place], self._read_ns[place] = whole, length, at_ns

    def _follow(self, of: tuple[str, ...]) -> None:
        """Note that the item at the next place is about these symbols, and go on to the place after it."""
        place = self._next
        for symbol in self._symbols[place]:
            left = self._places[symbol]
            left.remove(place)
            if not left:
                del self._places[symbol]
        self._symbols[place] = of
        for symbol in of:
            self._places.setdefault(symbol, []).append(place)
        self._next = (place + 1) % len(self._read_ns)


def _as_whole(point: NDArray[np.float32]) -> NDArray[np.float32]:
    """A point in whole numbers; what is no number counts as 0."""
    whole = np.rint(point * _SCALE)
    if not np.isfinite(whole).all():
        whole = np.nan_to_num(point, posinf=_MAX_COMPONENT, neginf=-_MAX_COMPONENT)
        whole = np.rint(whole * _SCALE)
    return np.minimum(np.maximum(whole, -_MAX_COMPONENT), _MAX_COMPONENT).astype(np.float32)


MIN_HEADLINE_WORDS = 5  # of a headline that is read without its body


class NewsScorer:
    """Scores in the order of the items; batching changes no bit. `heads` are those that `reader` reads with."""

    def __init__(self, reader: TextReader | None, heads: Heads | None, linker: EntityLinker) -> None:
        self._reader, self._linker = reader, linker
        self._labels = {} if heads is None else {name: head.labels for name, head in heads.heads.items()}
        size = 1 if reader is None else reader.size
        self._novelty = NoveltyIndex(size, MAX_RECENT, RECENT_HALF_LIFE_NS)
        self.version = "" if reader is None else reader.version
        if reader is not None and heads is not None:
            self.version += f"+heads@{heads.digest[:12]}"

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        """One result per item, in order; each item then counts for novelty. Raises: DependencyUnavailable."""
        links = [self._linker.link(f"{item.item.headline}\n{item.item.body}") for item in items]
        if self._reader is None or not items:
            return [
                _scores_without_encoder(item, symbols) for item, symbols in zip(items, links, strict=True)
            ]
        readings = self._reader.read([scored_text(item) for item in items])
        points = points_of(readings, self._reader.size)
        rows: list[NewsScores] = []
        for item, symbols, reading, point in zip(items, links, readings, points, strict=True):
            about = (*item.item.symbols, *symbols)
            novelty = self._novelty.measure(point, about, item.item.available_at_ns)
            rows.append(self._scores(reading, novelty, symbols))
        return rows

    def stances(self, texts: Sequence[str]) -> list[float]:
        """The stance of each text, −1 dovish to 1 hawkish, as of items; nothing counts for novelty.

        0 for all without an encoder. Raises: DependencyUnavailable.
        """
        if self._reader is None or not self._labels or not texts:
            return [0.0] * len(texts)
        return [self._signed_share(one, "stance", "hawkish", "dovish") for one in self._reader.read(texts)]

    def _scores(self, reading: TextReading, novelty: int, symbols: tuple[str, ...]) -> NewsScores:
        event, confidence = CAUSES[0], 0.0
        if "event" in self._labels:
            shares = reading.labels("event")
            best = int(shares.argmax())
            event, confidence = self._labels["event"][best], _in_thousandths(shares[best])
        return NewsScores(
            sentiment=self._signed_share(reading, "sentiment", "positive", "negative"),
            stance=self._signed_share(reading, "stance", "hawkish", "dovish"),
            event=event,
            event_confidence=confidence,
            relevance=_in_thousandths(self._share(reading, "relevance", "relevant", 0.5)),
            novelty=novelty / TRUST_STEPS,
            symbols=symbols,
            encoder=self.version,
        )

    def _signed_share(self, reading: TextReading, head: str, up: str, down: str) -> float:
        """P(up) − P(down)."""
        return _in_thousandths(self._share(reading, head, up, 0.0) - self._share(reading, head, down, 0.0))

    def _share(self, reading: TextReading, head: str, label: str, without: float) -> float:
        """The probability of a label; `without` where there is no such head."""
        labels = self._labels.get(head)
        return without if labels is None else float(reading.labels(head)[labels.index(label)])

    def state(self) -> dict[str, Any]:
        """What counts for novelty, as plain values."""
        return {"encoder": self.version, "novelty": self._novelty.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; what another encoder read cannot be compared and is forgotten. Raises:
        InvalidInput.
        """
        if state.get("encoder") == self.version:
            self._novelty.restore(state["novelty"])


def scored_text(item: ScreenedItem) -> str:
    """The text that the encoder reads of an item."""
    return text_to_score(item.item.headline, item.item.body)


def text_to_score(headline: str, body: str) -> str:
    """The headline, and the body after a headline of few words.

    A body takes five times as long to read as a headline and mostly repeats it at length.
    """
    if not body or headline.count(" ") + 1 >= MIN_HEADLINE_WORDS:
        return headline
    return f"{headline}\n{body}"


def _scores_without_encoder(item: ScreenedItem, symbols: tuple[str, ...]) -> NewsScores:
    """Without an encoder: neither good nor bad, perhaps relevant, new unless repeated."""
    return NewsScores(0.0, 0.0, CAUSES[0], 0.0, 0.5, round(1.0 / max(item.num_alike, 1), 3), symbols)


def _in_thousandths(value: float) -> float:
    return round(float(value) * TRUST_STEPS) / TRUST_STEPS

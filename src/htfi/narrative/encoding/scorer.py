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
from htfi.narrative.encoding.heads import Head, Heads
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.ports import TextEncoder

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
        self._points = np.zeros((max_recent, size), np.float32)
        self._lengths = np.ones(max_recent)
        self._read_ns = np.zeros(max_recent, np.int64)
        self._symbols: list[tuple[str, ...]] = [()] * max_recent
        self._places: dict[str, list[int]] = {}  # of each symbol, oldest first
        self._next = 0
        self._half_life_ns = half_life_ns
        self._step_ns = max(half_life_ns // _STEPS, 1)

    def measure(self, point: NDArray[np.float32], symbols: Iterable[str], at_ns: int) -> int:
        """Novelty in thousandths: 1000 − the largest likeness to an earlier item, decayed by its age; then the item is
        stored.
        """
        of = tuple(sorted(set(symbols))) or (WHOLE_MARKET_SYMBOL,)
        whole = np.clip(np.rint(np.nan_to_num(point) * _SCALE), -_MAX_COMPONENT, _MAX_COMPONENT).astype(
            np.float32
        )
        length = float(whole @ whole) ** 0.5 or 1.0
        places = self._places_of(of)
        likest = 0
        if len(places):
            if 4 * len(places) > len(self._read_ns):
                products = (self._points @ whole)[places]
            else:
                products = self._points[places] @ whole
            cosines = np.rint(products * (TRUST_STEPS / length) / self._lengths[places]).astype(np.int64)
            ages = np.maximum(at_ns - self._read_ns[places], 0)
            steps = np.minimum(ages // self._step_ns, _MAX_STEPS)
            likest = int((cosines * _DECAY[steps]).max()) // TRUST_STEPS
        self._add(whole, length, of, at_ns)
        return TRUST_STEPS - min(max(likest, 0), TRUST_STEPS)

    def state(self) -> dict[str, Any]:
        """Plain values, oldest item first; `restore` continues with the same novelties."""
        size = len(self._read_ns)
        order = [place for turn in range(size) if self._symbols[place := (self._next + turn) % size]]
        points = base64.b64encode(self._points[order].astype(np.int8).tobytes()).decode()
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
            self._add(whole, float(whole @ whole) ** 0.5 or 1.0, of, at_ns)

    def _places_of(self, symbols: tuple[str, ...]) -> NDArray[np.int64]:
        lists = [self._places[symbol] for symbol in symbols if symbol in self._places]
        if len(lists) < 2:
            return np.array(lists[0] if lists else [], np.int64)
        return np.array(sorted({place for one in lists for place in one}), np.int64)

    def _add(self, whole: NDArray[np.float32], length: float, of: tuple[str, ...], at_ns: int) -> None:
        place = self._next
        for symbol in self._symbols[place]:
            left = self._places[symbol]
            left.remove(place)
            if not left:
                del self._places[symbol]
        self._points[place], self._lengths[place] = whole, length
        self._read_ns[place], self._symbols[place] = at_ns, of
        for symbol in of:
            self._places.setdefault(symbol, []).append(place)
        self._next = (place + 1) % len(self._read_ns)


MIN_HEADLINE_WORDS = 5  # of a headline that is read without its body

LabelShares = Mapping[str, NDArray[np.float64]]  # by head, [n, labels]


class NewsScorer:
    """Scores in the order of the items; batching changes no bit."""

    def __init__(self, encoder: TextEncoder | None, heads: Heads | None, linker: EntityLinker) -> None:
        self._encoder, self._heads, self._linker = encoder, heads, linker
        size = 1 if encoder is None else encoder.size
        self._novelty = NoveltyIndex(size, MAX_RECENT, RECENT_HALF_LIFE_NS)
        self.version = "" if encoder is None else encoder.version
        if encoder is not None and heads is not None:
            self.version += f"+heads@{heads.digest[:12]}"

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        """One result per item, in order; each item then counts for novelty. Raises: DependencyUnavailable."""
        links = [self._linker.link(f"{item.item.headline}\n{item.item.body}") for item in items]
        if self._encoder is None or not items:
            return [
                _scores_without_encoder(item, symbols) for item, symbols in zip(items, links, strict=True)
            ]
        texts = [scored_text(item) for item in items]
        points, states = self._encoder.read(texts)
        probabilities: LabelShares = {} if self._heads is None else self._heads.score(points, states, texts)
        rows: list[NewsScores] = []
        for place, (item, symbols) in enumerate(zip(items, links, strict=True)):
            about = (*item.item.symbols, *symbols)
            novelty = self._novelty.measure(points[place], about, item.item.available_at_ns)
            rows.append(self._scores(probabilities, place, novelty, symbols))
        return rows

    def stances(self, texts: Sequence[str]) -> list[float]:
        """The stance of each text, −1 dovish to 1 hawkish, as of items; nothing counts for novelty.

        0 for all without an encoder. Raises: DependencyUnavailable.
        """
        if self._encoder is None or self._heads is None or not texts:
            return [0.0] * len(texts)
        points, states = self._encoder.read(texts)
        probabilities: LabelShares = self._heads.score(points, states, texts)
        heads = self._heads.heads
        return [
            _signed_share(heads, probabilities, "stance", "hawkish", "dovish", place)
            for place in range(len(texts))
        ]

    def _scores(
        self, probabilities: LabelShares, place: int, novelty: int, symbols: tuple[str, ...]
    ) -> NewsScores:
        heads: Mapping[str, Head] = {} if self._heads is None else self._heads.heads
        event, confidence = CAUSES[0], 0.0
        if "event" in probabilities:
            shares = probabilities["event"][place]
            best = int(shares.argmax())
            event, confidence = heads["event"].labels[best], _in_thousandths(shares[best])
        return NewsScores(
            sentiment=_signed_share(heads, probabilities, "sentiment", "positive", "negative", place),
            stance=_signed_share(heads, probabilities, "stance", "hawkish", "dovish", place),
            event=event,
            event_confidence=confidence,
            relevance=_in_thousandths(_share(heads, probabilities, "relevance", "relevant", place, 0.5)),
            novelty=novelty / TRUST_STEPS,
            symbols=symbols,
            encoder=self.version,
        )

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


def _signed_share(
    heads: Mapping[str, Head], probabilities: LabelShares, head: str, up: str, down: str, place: int
) -> float:
    """P(up) − P(down)."""
    return _in_thousandths(
        _share(heads, probabilities, head, up, place, 0.0)
        - _share(heads, probabilities, head, down, place, 0.0)
    )


def _share(
    heads: Mapping[str, Head], probabilities: LabelShares, head: str, label: str, place: int, without: float
) -> float:
    return (
        float(probabilities[head][place][heads[head].labels.index(label)])
        if head in probabilities
        else without
    )


def _in_thousandths(value: float) -> float:
    return round(float(value) * TRUST_STEPS) / TRUST_STEPS

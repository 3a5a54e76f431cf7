"""Finds items whose times do not fit: delivered far later than their source usually takes, dated in the future, or
dated before a move of the price that they came after.
"""

from collections import OrderedDict, deque
from typing import Any

from htfi.domain.events import News
from htfi.domain.news import ScreeningFinding
from htfi.narrative.sanitising.config import EARLY_NS, LATE_NS, MAX_SOURCES, MAX_SYMBOLS, SanitiserConfig
from htfi.narrative.sanitising.text_features import FRESH_WORDS

TIMESTAMP_RULE = "instant"
_MIN_USUAL_NS = 60 * 1_000_000_000
_HINDSIGHT_NS = 600 * 1_000_000_000
_HOUR_NS = 3_600_000_000_000
_DAY_NS = 24 * _HOUR_NS
_MAX_USUAL_MULTIPLE = 4  # times the usual delay
_MAX_MOVES = 8  # of a symbol


class TimestampChecker:
    """The usual delay of each source, and the last large moves of each symbol, in bounded number."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._usual_ns: OrderedDict[str, int] = OrderedDict()
        self._moves: OrderedDict[str, deque[tuple[int, int]]] = OrderedDict()

    def observe_move(self, symbol: str, at_ns: int, way: int) -> None:
        """A large move of a symbol's price at an instant: 1 up, −1 down."""
        moves = self._moves.setdefault(symbol, deque(maxlen=_MAX_MOVES))
        moves.append((at_ns, way))
        self._moves.move_to_end(symbol)
        if len(self._moves) > MAX_SYMBOLS:
            self._moves.popitem(last=False)

    def judge(self, item: News, words: list[str], side: int) -> ScreeningFinding | None:
        """A finding if an item's times do not fit; learns the usual delay of its source. An item without a date has no
        finding.
        """
        if item.event_time_ns <= 0:
            return None
        delay_ns = item.available_at_ns - item.event_time_ns
        usual_ns = self._usual_ns.get(item.source, LATE_NS // _MAX_USUAL_MULTIPLE)
        found = self._judge(item, delay_ns, usual_ns, words, side)
        self._learn(item.source, usual_ns, max(delay_ns, 0))
        return found

    def _judge(
        self, item: News, delay_ns: int, usual_ns: int, words: list[str], side: int
    ) -> ScreeningFinding | None:
        if delay_ns < -EARLY_NS:
            strength = 0.6 if delay_ns < -_DAY_NS else 0.5 if delay_ns < -_HOUR_NS else 0.3
            return ScreeningFinding(
                TIMESTAMP_RULE, strength, f"dated {_time_span(-delay_ns)} after it arrived"
            )
        if delay_ns > max(usual_ns, _HINDSIGHT_NS) and side:
            for symbol in item.symbols:
                for at_ns, way in self._moves.get(symbol, ()):
                    if item.event_time_ns < at_ns <= item.available_at_ns and way == side:
                        return ScreeningFinding(
                            TIMESTAMP_RULE,
                            0.6,
                            "dated before the price move that it reports, and delivered after it",
                        )
        if delay_ns > max(_MAX_USUAL_MULTIPLE * usual_ns, LATE_NS):
            late = f"arrived {_time_span(delay_ns)} after its date; its source usually takes {_time_span(usual_ns)}"
            fresh = not FRESH_WORDS.isdisjoint(words)
            strength = (
                0.6 if fresh else 0.3 if item.event_time_ns % _DAY_NS == 0 else 0.5
            )  # a date without a time
            return ScreeningFinding(
                TIMESTAMP_RULE, strength, f"{late}{', and it claims to be new' if fresh else ''}"
            )
        return None

    def _learn(self, source: str, usual_ns: int, delay_ns: int) -> None:
        """Towards the delay that 19 of 20 items stay below: up by a fifth of itself, down by a hundredth (a stochastic
        quantile).
        """
        after = usual_ns + usual_ns // 5 if delay_ns > usual_ns else usual_ns - usual_ns // 100
        self._usual_ns[source] = min(max(after, _MIN_USUAL_NS), 30 * _DAY_NS)
        self._usual_ns.move_to_end(source)
        if len(self._usual_ns) > MAX_SOURCES:
            self._usual_ns.popitem(last=False)

    def state(self) -> dict[str, Any]:
        return {
            "usual": [list(pair) for pair in self._usual_ns.items()],
            "moves": [[symbol, [list(move) for move in moves]] for symbol, moves in self._moves.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._usual_ns = OrderedDict((source, usual) for source, usual in state["usual"])
        self._moves = OrderedDict(
            (symbol, deque(((at_ns, way) for at_ns, way in moves), maxlen=_MAX_MOVES))
            for symbol, moves in state["moves"]
        )


def _time_span(ns: int) -> str:
    if ns >= 2 * _DAY_NS:
        return f"{ns // _DAY_NS} days"
    return f"{ns // _HOUR_NS} hours" if ns >= 2 * _HOUR_NS else f"{ns // _MIN_USUAL_NS} minutes"

"""The answer of `htfi forecast`: the main path over one file, in memory, and what it ended with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from htfi.domain.decision import Decision, Outcome, Receipt
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, FeedItem, News, Rejection, TimePassed
from htfi.domain.time import SystemClock, format_ns
from htfi.forecasting.scoreboard import ScoreRow
from htfi.pipeline.ports import Feed, Position
from htfi.wiring.engine import build_loop
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.settings import Settings, override


@dataclass(frozen=True, slots=True)
class Answer:
    """The newest decision of one series, and how the file's earlier forecasts did."""

    decision: Decision
    prices: Sequence[float]
    scores: Sequence[ScoreRow]
    num_events: int
    quarantine: dict[str, list[Rejection]]
    others: Sequence[str]

    @property
    def withheld(self) -> bool:
        return self.decision.verdict.outcome is Outcome.WITHHOLD

    def plain(self) -> dict[str, Any]:
        """JSON values; a forecast that policy keeps back is not in them."""
        decision, forecast = self.decision, self.decision.forecast
        told: dict[str, Any] = {}
        if not self.withheld:
            told = {
                "forecast": {
                    "levels": forecast.levels,
                    "log_returns": dict(zip(forecast.horizons, forecast.quantiles, strict=True)),
                    "weights": forecast.shares,
                },
                "rationale": decision.rationale.text,
            }
        return {
            "series": decision.series,
            "as_of": format_ns(decision.as_of_ns),
            "last_price": decision.last_price,
            "regime": decision.regime.value,
            "verdict": {"outcome": decision.verdict.outcome.value, "reasons": decision.verdict.reasons},
            **told,
            "scores": [
                {
                    "name": row.name,
                    "horizon": row.horizon,
                    "num": row.num,
                    "crps": row.crps,
                    "coverage90": row.coverage90,
                }
                for row in self.scores
            ],
            "events": self.num_events,
            "quarantine": {reason: len(rows) for reason, rows in self.quarantine.items()},
        }


def ask(
    settings: Settings, file: str, symbol: str | None, interval: str | None, mapping: Path | None
) -> Answer:
    """Run the main path over the file in memory. Raises: InvalidInput where the history is too short."""
    if interval is not None:
        settings = override(settings, "market", bar=interval)
    specs = resolve([file], mapping, symbol=symbol or "", interval=interval or "")
    if any(spec.live for spec in specs):
        raise InvalidInput(f"{file} is a live source: `htfi run {file}` forecasts streams")
    if symbol:
        specs = [replace(spec, only=(symbol,)) for spec in specs]
    tray, nowhere, seen = _Tray(), _Nowhere(), _Seen()
    feed = _Counted(open_feed(specs, inbox=Path(), quarantine=tray, clock=SystemClock()))
    try:
        loop = build_loop(settings, feed, nowhere, nowhere, seen.note)
        loop.run(lambda: None)
    finally:
        feed.close()
    if not seen.latest:
        raise InvalidInput(_too_short(file, feed, settings, tray, symbol))
    names = sorted(seen.latest, key=lambda name: (-len(seen.prices[name]), name))
    name = names[0]
    return Answer(
        decision=seen.latest[name],
        prices=seen.prices[name],
        scores=loop.rooms.forecaster.scores(),
        num_events=loop.num_events,
        quarantine=tray.by_reason,
        others=names[1:],
    )


def _too_short(file: str, feed: "_Counted", settings: Settings, tray: "_Tray", symbol: str | None) -> str:
    needed = settings.forecasting.history_bars
    aside = sum(len(rows) for rows in tray.by_reason.values())
    also = f"; {aside:,} rows were set aside: {_reasons(tray)}" if aside else ""
    if feed.num_bars:
        return f"{file} holds {feed.num_bars:,} bars: a forecast needs {needed} of one series at least{also}"
    if feed.num_ticks:
        return (
            f"{file} holds {feed.num_ticks:,} ticks, too few bars of {settings.market.bar}: a forecast needs "
            f"{needed}; name a shorter --interval{also}"
        )
    wanted = f" of {symbol}" if symbol else ""
    return f"{file} holds no price{wanted} that can be used: a forecast needs {needed} bars{also}"


def _reasons(tray: "_Tray") -> str:
    return ", ".join(f"{reason} ({len(rows):,})" for reason, rows in tray.by_reason.items())


@dataclass(slots=True)
class _Seen:
    """The newest decision and the prices of every series, filled by the loop."""

    latest: dict[str, Decision] = field(default_factory=dict[str, Decision])
    prices: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def note(self, decision: Decision) -> None:
        self.latest[decision.series] = decision
        self.prices.setdefault(decision.series, []).append(decision.last_price)


class _Tray:
    """A quarantine in memory."""

    def __init__(self) -> None:
        self.by_reason: dict[str, list[Rejection]] = {}

    def set_aside(self, rejection: Rejection) -> None:
        self.by_reason.setdefault(rejection.reason, []).append(rejection)

    def counts(self) -> dict[str, int]:
        return {reason: len(rows) for reason, rows in self.by_reason.items()}

    def position(self) -> Position:
        return {}

    def close(self) -> None: ...


class _Counted:
    """A feed that counts what passes."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.num_bars = 0
        self.num_ticks = 0

    def __iter__(self) -> Iterator[FeedItem]:
        for item in self._feed:
            if isinstance(item, Bar):
                self.num_bars += 1
            elif not isinstance(item, News | TimePassed):
                self.num_ticks += 1
            yield item

    def position(self) -> Position:
        return self._feed.position()

    def progress(self) -> float | None:
        return self._feed.progress()

    def stop(self) -> None:
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()


class _Nowhere:
    """The ledger and the outlet of an answer that nobody keeps."""

    size = 0
    num_released = 0

    def entry(self, index: int) -> bytes:
        raise InvalidInput(f"there is no entry {index}: nothing is recorded")

    def tidy(self) -> None: ...

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        return [Receipt(0, "")] * len(entries)

    def release(self, receipt: Receipt, entry: bytes) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

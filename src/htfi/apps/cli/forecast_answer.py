"""The answer of `htfi forecast`: the main path over one file, in memory, and what it ended with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from htfi.domain.decision import Decision, Outcome
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Rejection
from htfi.domain.time import format_ns
from htfi.forecasting.scoreboard import ScoreRow
from htfi.wiring.settings import Settings
from htfi.wiring.unrecorded import run_unrecorded


@dataclass(frozen=True, slots=True)
class Answer:
    """The newest decision of one series, and how the file's earlier forecasts did."""

    decision: Decision
    prices: Sequence[float]
    scores: Sequence[ScoreRow]
    num_events: int
    quarantine: dict[str, list[Rejection]]
    others: Sequence[str]
    num_repaired: int = 0  # rows used with a field put right

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
            "repaired": self.num_repaired,
        }


def ask(
    settings: Settings, file: str, symbol: str | None, interval: str | None, mapping: Path | None
) -> Answer:
    """Run the main path over the file in memory. Raises: InvalidInput where the history is too short."""
    seen = _Seen()
    done = run_unrecorded(settings, [file], mapping, seen.note, symbol=symbol, interval=interval)
    if not seen.latest:
        raise InvalidInput(done.too_short(file, symbol))
    names = sorted(seen.latest, key=lambda name: (-len(seen.prices[name]), name))
    name = names[0]
    return Answer(
        decision=seen.latest[name],
        prices=seen.prices[name],
        scores=done.loop.rooms.forecaster.scores(),
        num_events=done.loop.num_events,
        quarantine=done.quarantine,
        others=names[1:],
        num_repaired=done.num_repaired,
    )


@dataclass(slots=True)
class _Seen:
    """The newest decision and the prices of every series, filled by the loop."""

    latest: dict[str, Decision] = field(default_factory=dict[str, Decision])
    prices: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def note(self, decision: Decision) -> None:
        self.latest[decision.series] = decision
        self.prices.setdefault(decision.series, []).append(decision.last_price)

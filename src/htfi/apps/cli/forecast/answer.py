"""The answer of `htfi forecast`: the main path over one file, in memory, and what it ended with.

How `htfi forecast` puts its answer on a terminal: where the price is, where it may go, why.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.text import Text

from htfi.apps.cli.summary import score_table
from htfi.apps.cli.view.state import SeriesView
from htfi.apps.display.drawing import (
    INNER,
    MIDDLE,
    MUTED,
    REGIME_STYLE,
    fan_chart,
    format_percent,
    printable,
    truncate_end,
)
from htfi.apps.display.tables import wrap_words
from htfi.domain.counts import counted
from htfi.domain.decision import Decision, Forecast, PolicyOutcome
from htfi.domain.time import format_ns
from htfi.forecasting.scores import ScoreRow
from htfi.library.arguments import bar_interval
from htfi.library.charts.fan import BAND_LEVELS, format_price, quantile_at
from htfi.library.forecast import newest_decisions
from htfi.library.results import rows_set_aside
from htfi.library.set_aside import SetAsideRow
from htfi.library.tables import file_source, read_prices
from htfi.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class ForecastAnswer:
    """The newest decision of one series, and how the file's earlier forecasts did."""

    decision: Decision
    prices: Sequence[float]
    scores: Sequence[ScoreRow]
    num_events: int
    quarantine: Mapping[str, Sequence[SetAsideRow]]
    others: Sequence[str]
    num_quarantined: Mapping[str, int] = field(default_factory=dict[str, int])
    num_repaired: int = 0  # rows used with a field put right

    @property
    def withheld(self) -> bool:
        return self.decision.verdict.outcome is PolicyOutcome.WITHHOLD

    def plain(self) -> dict[str, Any]:
        """JSON values; a forecast that policy keeps back is not in them."""
        decision, forecast = self.decision, self.decision.forecast
        reading: dict[str, Any] = {}
        if not self.withheld:
            reading = {
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
            **reading,
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
            "quarantine": dict(self.num_quarantined),
            "repaired": self.num_repaired,
        }


def forecast_files(
    settings: Settings,
    file: str,
    symbol: str | None,
    interval: str | None,
    mapping: Path | None,
    zone: str = "",
) -> ForecastAnswer:
    """Run the main path over the file in memory, read as `htfi.forecast` reads it, but that times without a zone are
    refused unless `zone` is theirs; with a mapping, as that says.

    Raises: InvalidInput where the history is too short.
    """
    interval = bar_interval(interval)
    if mapping is None:
        source = read_prices(file, symbol=symbol, interval=interval)
        source = replace(source, spec=replace(source.spec, zone=zone))  # as `htfi run`: no zone is guessed
    else:
        source = file_source(file, mapping, symbol, interval, zone)
    newest = newest_decisions(settings, [source], interval)
    names = sorted(newest.decided, key=lambda name: (-len(newest.prices[name]), name))
    name, done = names[0], newest.done
    listed: dict[str, list[SetAsideRow]] = {}
    counts: dict[str, int] = {}
    for row in rows_set_aside([source], done, newest.decided):
        if row.num:  # else it stands for a whole series
            counts[row.reason] = counts.get(row.reason, 0) + row.num
            listed.setdefault(row.reason, []).extend([row] if row.row else [])
    return ForecastAnswer(
        decision=newest.decided[name].worded(),
        prices=newest.prices[name],
        scores=done.loop.components.forecaster.scores(),
        num_events=done.loop.num_events,
        quarantine=listed,
        others=names[1:],
        num_quarantined=counts,
        num_repaired=done.num_repaired,
    )


_CHART_ROWS = 12
_OTHERS_NAMED = 12


def answer_lines(answer: ForecastAnswer, width: int) -> list[Text]:
    """The lines to print, at most `width` columns each where words allow."""
    lines = [Text(), *_head(answer, width), Text()]
    if answer.withheld:
        reasons = "; ".join(answer.decision.verdict.reasons)
        lines.append(Text(f" Policy withholds this forecast: {printable(reasons)}."))
    else:
        lines += _rationale_lines(answer, width)
    lines += [
        Text(),
        Text(" scores of earlier forecasts on this file", MUTED),
        *score_table(answer.scores, width),
    ]
    return [*lines, Text(), *_read(answer, width)]


def _rationale_lines(answer: ForecastAnswer, width: int) -> list[Text]:
    decision = answer.decision
    change = answer.prices[-1] / answer.prices[-2] - 1 if len(answer.prices) > 1 else 0.0
    bands = tuple(tuple(_levels(decision.forecast, h)) for h in range(len(decision.forecast.horizons)))
    series = SeriesView(
        name=decision.series,
        last_price=decision.last_price,
        change=change,
        regime=decision.regime,
        horizons=decision.forecast.horizons,
        bands=bands,
        history=tuple(answer.prices),
        weights={},
    )
    chart = [Text(" ").append_text(line) for line in fan_chart(series, width - 2, _CHART_ROWS)]
    why = wrap_words(printable(decision.rationale.text), width - 8)
    words = [Text(f" {'' if k else 'why':<5}", MUTED).append(line, "") for k, line in enumerate(why)]
    caution = [
        Text(f" caution: {printable('; '.join(decision.verdict.reasons))}", REGIME_STYLE[decision.regime])
    ]
    return [*chart, Text(), *_table(series), Text(), *words, *(caution if decision.verdict.reasons else [])]


def _levels(forecast: Forecast, h: int) -> list[float]:
    return [quantile_at(level, forecast.levels, forecast.quantiles[h]) for level in BAND_LEVELS]


def _head(answer: ForecastAnswer, width: int) -> list[Text]:
    """One line, or a second for what does not stand beside a long name."""
    decision = answer.decision
    name, text = Text(" ").append(printable(decision.series), "bold"), Text(" ")
    text.append(f" {format_ns(decision.as_of_ns).replace('T', ' ').replace('Z', ' UTC')}  ", MUTED)
    text.append(format_price(decision.last_price), "bold")
    text.append(f"  ■ {decision.regime.value}", REGIME_STYLE[decision.regime])
    return [name.append_text(text)] if len(name) + len(text) <= width else [name, text]


def _table(series: SeriesView) -> list[Text]:
    """A row of prices and a row of per cents for each horizon."""
    names = [f"{level:.0%}" if level != 0.5 else "median" for level in BAND_LEVELS]
    lines = [Text(f" {'ahead':<9}" + "".join(f"{name:>14}" for name in names), MUTED)]
    for horizon, band in zip(series.horizons, series.bands, strict=True):
        prices = Text(f" {f'{horizon} bar' + ('s' if horizon > 1 else ''):<9}", "bold")
        percents = Text(f" {'':<9}")
        for k, value in enumerate(band):
            style = MIDDLE if k == 2 else INNER if k in (1, 3) else ""
            prices.append(f"{format_price(series.last_price * math.exp(value)):>14}", style)
            percents.append(f"{format_percent(math.expm1(value)):>14}", MUTED)
        lines += [prices, percents]
    lines.append(Text(" expected: half of outcomes within 25% … 75%, nine in ten within 5% … 95%", MUTED))
    return lines


def _read(answer: ForecastAnswer, width: int) -> list[Text]:
    lines = [Text(" read      ", MUTED).append(counted(answer.num_events, "event"), "")]
    for reason, rows in answer.quarantine.items():
        first = rows[0]
        lines.append(
            Text(" set aside ", MUTED).append(f"{answer.num_quarantined[reason]:,} × {printable(reason)}", "")
        )
        lines.append(Text(f" {'':<10}first: row {first.row:,}, {truncate_end(first.raw, width - 36)}", MUTED))
    if answer.num_repaired:
        lines.append(Text(" repaired  ", MUTED).append(f"{counted(answer.num_repaired, 'bar')}, used", ""))
    if answer.others:
        named = ", ".join(printable(name) for name in answer.others[:_OTHERS_NAMED])
        more = (
            f" and {len(answer.others) - _OTHERS_NAMED:,} more" if len(answer.others) > _OTHERS_NAMED else ""
        )
        for k, words in enumerate(wrap_words(f"{named}{more}; choose with --symbol", width - 12)):
            lines.append(Text(f" {'' if k else 'also here':<10}", MUTED).append(words, ""))
    return lines

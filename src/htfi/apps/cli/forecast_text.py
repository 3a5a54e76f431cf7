"""How `htfi forecast` puts its answer on a terminal: where the price is, where it may go, why."""

import math

from rich.text import Text

from htfi.apps.cli.forecast_answer import Answer
from htfi.apps.cli.summary import score_table
from htfi.apps.cli.view_state import BAND_LEVELS, SeriesView, quantile_at
from htfi.apps.cli.view_text import (
    INNER,
    MIDDLE,
    QUIET,
    REGIME_STYLE,
    clip,
    fan_chart,
    format_percent,
    format_price,
    printable,
)
from htfi.domain.decision import Forecast
from htfi.domain.time import format_ns
from htfi.wiring.terminal import wrapped

_CHART_ROWS = 12
_OTHERS_NAMED = 12


def answer_lines(answer: Answer, width: int) -> list[Text]:
    """The lines to print, at most `width` columns each where words allow."""
    lines = [Text(), *_head(answer, width), Text()]
    if answer.withheld:
        reasons = "; ".join(answer.decision.verdict.reasons)
        lines.append(Text(f" Policy keeps this forecast back: {printable(reasons)}."))
    else:
        lines += _told(answer, width)
    lines += [
        Text(),
        Text(" how good such answers have been on this file", QUIET),
        *score_table(answer.scores, width),
    ]
    return [*lines, Text(), *_read(answer, width)]


def _told(answer: Answer, width: int) -> list[Text]:
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
    why = wrapped(printable(decision.rationale.text), width - 8)
    words = [Text(f" {'' if k else 'why':<5}", QUIET).append(line, "") for k, line in enumerate(why)]
    caution = [
        Text(f" caution: {printable('; '.join(decision.verdict.reasons))}", REGIME_STYLE[decision.regime])
    ]
    return [*chart, Text(), *_table(series), Text(), *words, *(caution if decision.verdict.reasons else [])]


def _levels(forecast: Forecast, h: int) -> list[float]:
    return [quantile_at(level, forecast.levels, forecast.quantiles[h]) for level in BAND_LEVELS]


def _head(answer: Answer, width: int) -> list[Text]:
    """One line, or a second for what does not stand beside a long name."""
    decision = answer.decision
    name, text = Text(" ").append(printable(decision.series), "bold"), Text(" ")
    text.append(f" {format_ns(decision.as_of_ns).replace('T', ' ').replace('Z', ' UTC')}  ", QUIET)
    text.append(format_price(decision.last_price), "bold")
    text.append(f"  ■ {decision.regime.value}", REGIME_STYLE[decision.regime])
    return [name.append_text(text)] if len(name) + len(text) <= width else [name, text]


def _table(series: SeriesView) -> list[Text]:
    """A row of prices and a row of per cents for each horizon."""
    names = [f"{level:.0%}" if level != 0.5 else "median" for level in BAND_LEVELS]
    lines = [Text(f" {'ahead':<9}" + "".join(f"{name:>14}" for name in names), QUIET)]
    for horizon, band in zip(series.horizons, series.bands, strict=True):
        prices = Text(f" {f'{horizon} bar' + ('s' if horizon > 1 else ''):<9}", "bold")
        percents = Text(f" {'':<9}")
        for k, value in enumerate(band):
            style = MIDDLE if k == 2 else INNER if k in (1, 3) else ""
            prices.append(f"{format_price(series.last_price * math.exp(value)):>14}", style)
            percents.append(f"{format_percent(math.expm1(value)):>14}", QUIET)
        lines += [prices, percents]
    lines.append(Text(" expected: half of outcomes within 25% … 75%, nine in ten within 5% … 95%", QUIET))
    return lines


def _read(answer: Answer, width: int) -> list[Text]:
    lines = [Text(" read      ", QUIET).append(f"{answer.num_events:,} events", "")]
    for reason, rows in answer.quarantine.items():
        first = rows[0]
        lines.append(Text(" set aside ", QUIET).append(f"{len(rows):,} × {printable(reason)}", ""))
        lines.append(Text(f" {'':<10}first: row {first.row:,}, {clip(first.raw, width - 36)}", QUIET))
    if answer.num_repaired:
        lines.append(Text(" repaired  ", QUIET).append(f"{answer.num_repaired:,} bars, used", ""))
    if answer.others:
        named = ", ".join(printable(name) for name in answer.others[:_OTHERS_NAMED])
        more = (
            f" and {len(answer.others) - _OTHERS_NAMED:,} more" if len(answer.others) > _OTHERS_NAMED else ""
        )
        for k, words in enumerate(wrapped(f"{named}{more}; choose with --symbol", width - 12)):
            lines.append(Text(f" {'' if k else 'also here':<10}", QUIET).append(words, ""))
    return lines

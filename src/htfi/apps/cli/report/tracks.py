"""A second pass over the decisions: the points of the series that the report draws, thinned to fit a page.

Which series are drawn follows from the survey, so the two passes hold no more than what they show.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from htfi.apps.cli.report.amendments import amended_id
from htfi.apps.cli.report.run_survey import RunSurvey
from htfi.apps.cli.view.state import BAND_LEVELS, quantile_at
from htfi.domain.decision import Decision, Regime
from htfi.domain.time import NS_PER_MS
from htfi.wiring.outputs import ReleasedLine, WithheldLine, line_subject

SERIES_DRAWN = 24
POINTS_IN_ALL = 36_000
POINTS_PER_SERIES = 3_000
TEXT_CHARS_IN_ALL = 1_500_000
MARKS_PER_SERIES = 120
_PPM = 1e6  # log returns travel as whole parts per million


class TrackChoice(NamedTuple):
    """The series that are drawn, the most telling first, and every how many bars a point is kept."""

    names: list[str]
    strides: list[int]


def choose_tracks(survey: RunSurvey) -> TrackChoice:
    """Series with shocks first, then those with the most to see."""
    ranked = sorted(
        survey.series.values(), key=lambda tally: (-tally.num_shock / tally.num, -tally.num, tally.name)
    )
    drawn = ranked[:SERIES_DRAWN]
    points = min(POINTS_PER_SERIES, POINTS_IN_ALL // len(drawn))
    return TrackChoice([tally.name for tally in drawn], [math.ceil(tally.num / points) for tally in drawn])


class _SeriesTrack:
    """The points of one series as columns; times are milliseconds, q holds [H][5] columns of ppm or None."""

    def __init__(self, name: str, stride: int, num_horizons: int) -> None:
        self.name, self.stride, self.num_bars = name, stride, 0
        self.bars: list[int] = []
        self.times_ms: list[int] = []
        self.prices: list[float] = []
        self.regimes: list[int] = []
        self.texts: list[str | None] = []
        self.marks: list[dict[str, Any]] = []
        self.cited: set[str] = set()
        self.bands: list[list[list[int | None]]] = [[[] for _ in BAND_LEVELS] for _ in range(num_horizons)]


def collect_tracks(
    lines: Iterable[ReleasedLine | WithheldLine], survey: RunSurvey, choice: TrackChoice
) -> list[dict[str, Any]]:
    """Plain JSON values, one entry a drawn series."""
    h = len(survey.axes.horizons)
    tracks = {
        name: _SeriesTrack(name, stride, h) for name, stride in zip(choice.names, choice.strides, strict=True)
    }
    num_chars_left = TEXT_CHARS_IN_ALL
    for line in lines:
        about = line_subject(line)
        track = tracks.get(f"{about.symbol}/{about.interval}")
        if track is None:
            continue
        if amended_id(line) and not about.is_between_bars:
            num_chars_left -= _apply_amendment(track, line, survey)
            continue
        if about.is_between_bars:
            continue  # it brings no bar
        bar = track.num_bars
        track.num_bars += 1
        decision = line.decision if isinstance(line, ReleasedLine) else None
        is_news = decision is not None and _add_news_mark(track, bar, decision)
        if bar % track.stride and not is_news:
            continue
        track.bars.append(bar)
        track.times_ms.append(about.as_of_ns // NS_PER_MS)
        track.prices.append(float(f"{about.last_price:.8g}"))
        track.regimes.append(_REGIMES[about.regime])
        text = _text(line)
        num_chars_left -= len(text)
        track.texts.append(text if num_chars_left > 0 else None)
        _append_bands(track, decision, survey)
    return [_plain(track) for track in tracks.values() if track.bars]


_REGIMES = {regime: r for r, regime in enumerate(Regime)}


def _text(line: ReleasedLine | WithheldLine) -> str:
    if isinstance(line, ReleasedLine):
        return line.decision.rationale.text
    return f"Withheld by policy: {'; '.join(line.reasons)}."


def _apply_amendment(track: _SeriesTrack, line: ReleasedLine | WithheldLine, survey: RunSurvey) -> int:
    """Let an amendment's words and bands take the place of its first decision's, where those are drawn; how much
    longer it is.
    """
    at_ms = line_subject(line).as_of_ns // NS_PER_MS
    for k in range(len(track.times_ms) - 1, -1, -1):
        if track.times_ms[k] < at_ms:
            break
        before = track.texts[k]
        if track.times_ms[k] == at_ms and isinstance(line, ReleasedLine):
            for h, values in enumerate(_bands(line.decision, survey)):
                for b, value in enumerate(values):
                    track.bands[h][b][k] = value
        if track.times_ms[k] == at_ms and before is not None:
            track.texts[k] = _text(line)
            return len(_text(line)) - len(before)
    return 0


def _add_news_mark(track: _SeriesTrack, bar: int, decision: Decision) -> bool:
    """Note a decision that is the first to cite some news."""
    fresh = [item for item in decision.rationale.cited if item not in track.cited]
    if not fresh or len(track.marks) >= MARKS_PER_SERIES:
        return False
    track.cited.update(fresh)
    headlines = [
        text for slot, text in sorted(decision.rationale.slots.items()) if slot.startswith("headline")
    ]
    track.marks.append({"bar": bar, "headlines": headlines or fresh})
    return True


def _append_bands(track: _SeriesTrack, decision: Decision | None, survey: RunSurvey) -> None:
    for h, values in enumerate(_bands(decision, survey)):
        for b, value in enumerate(values):
            track.bands[h][b].append(value)


def _bands(decision: Decision | None, survey: RunSurvey) -> list[list[int | None]]:
    """At BAND_LEVELS, by horizon."""
    rows = [_row(decision, horizon) for horizon in survey.axes.horizons]
    return [
        [None if row is None else round(quantile_at(level, row[0], row[1]) * _PPM) for level in BAND_LEVELS]
        for row in rows
    ]


def _row(decision: Decision | None, horizon: int) -> tuple[tuple[float, ...], list[float]] | None:
    if decision is None or horizon not in decision.forecast.horizons:
        return None
    forecast = decision.forecast
    return forecast.levels, forecast.quantiles[forecast.horizons.index(horizon)]


def _plain(track: _SeriesTrack) -> dict[str, Any]:
    return {
        "name": track.name,
        "num_bars": track.num_bars,
        "stride": track.stride,
        "bars": track.bars,
        "times_ms": track.times_ms,
        "prices": track.prices,
        "regimes": "".join(str(r) for r in track.regimes),
        "texts": track.texts,
        "marks": track.marks,
        "bands": track.bands,
    }

"""Puts the page together: tables as HTML that reads without scripts, charts as data for page.js."""

import json
from html import escape
from itertools import accumulate
from typing import Any

import numpy as np

from htfi import __version__
from htfi.apps.cli.report.cells import cells_html
from htfi.apps.cli.report.facts import ReportFacts, peers_html
from htfi.apps.cli.report.governance import governance_html
from htfi.apps.cli.report.orders import orders_html
from htfi.apps.cli.report.run_survey import NUM_INTERVALS, NUM_PIT_BINS, RunSurvey
from htfi.apps.cli.report.scheduled_events import scheduled_events_html
from htfi.apps.cli.report.statements import statements_html
from htfi.apps.cli.report.tables import (
    facts_html,
    notable_html,
    notices_html,
    plain_name,
    quarantine_html,
    readings_html,
    regimes_html,
    scores_html,
    series_html,
)
from htfi.apps.display.page import fill_template, page_html, resource
from htfi.domain.time import NS_PER_MS, format_ns

TRAILING = NUM_INTERVALS // 10
_SIGNIFICANT = 5


def render(facts: ReportFacts, survey: RunSurvey, tracks: list[dict[str, Any]]) -> str:
    """The whole page as text."""
    start, end = format_ns(survey.start_ns)[:10], format_ns(survey.end_ns)[:10]
    parts = {
        "period": escape(start if start == end else f"{start} to {end}"),
        "facts": facts_html(facts, survey),
        "scores": scores_html(survey),
        "regimes": regimes_html(survey),
        "cells": cells_html(
            survey.cells, survey.axes.horizons, plain_name(survey.axes.names[survey.baseline])
        ),
        "notable": notable_html(survey),
        "readings": readings_html(survey),
        "statements": statements_html(facts.statements),
        "events": scheduled_events_html(facts.events),
        "orders": orders_html(facts.orders),
        "governance": governance_html(facts.governance),
        "series": series_html(survey, [track["name"] for track in tracks]),
        "nodes": peers_html(facts.peers),
        "notices": notices_html(facts.notices),
        "quarantine": quarantine_html(facts),
        "drawn": _drawn_note(survey, tracks),
        "version": escape(__version__),
        "data": _embed(_data(survey, tracks)),
    }
    own = "htfi.apps.cli.report"
    scripts = [resource(own, name) for name in ("plotly-cartesian.min.js", "axis.js", "page.js")]
    body = fill_template(resource(own, "page.html"), parts)
    return page_html(f"HTFI · {start} to {end}", body, style=resource(own, "page.css"), scripts=scripts)


def _embed(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _drawn_note(survey: RunSurvey, tracks: list[dict[str, Any]]) -> str:
    notes: list[str] = []
    if len(tracks) < len(survey.series):
        notes.append(
            f"{len(tracks)} of {len(survey.series):,} series are drawn: those with most shocks first, then the longest."
        )
    thinned = [track["stride"] for track in tracks if track["stride"] > 1]
    if thinned:
        notes.append(
            f"Charts of long series show as few as one bar in {max(thinned):,}; scores use every bar."
        )
    return escape(" ".join(notes))


def _data(survey: RunSurvey, tracks: list[dict[str, Any]]) -> dict[str, Any]:
    axes = survey.axes
    # a run of few decisions leaves stretches empty: they carry the time before
    times_ms = [time_ns // NS_PER_MS for time_ns in accumulate(survey.times_ns, max)]
    num_scored = survey.num.sum(axis=0)  # [H]
    below = survey.below / np.maximum(1, num_scored)[:, None, None]
    return {
        "horizons": list(axes.horizons),
        "levels": list(axes.levels),
        "names": list(axes.names),
        "times_ms": times_ms,
        "relative": _relative(survey),
        "weights": _weights(survey),
        "reliability": _rounded(below[:, 0]),
        "pit": _rounded(survey.pit / np.maximum(1, survey.pit.sum(axis=1, keepdims=True)) * NUM_PIT_BINS),
        "stated": survey.stated.points(),
        "num_scored": num_scored.astype(int).tolist(),
        "tracks": tracks,
    }


def _relative(survey: RunSurvey) -> list[list[list[float | None]]]:
    """Mean CRPS over a trailing tenth of the run, as a ratio to the random walk's: [H][K][T]."""
    baseline = survey.baseline
    sums, nums, num_each = _trailing(survey.crps), _trailing(survey.num), _trailing(survey.num_by_name)
    ratio = np.full(sums.shape, np.nan)
    base = sums[:, :, baseline]
    enough = (nums >= 20) & (base > 0)
    ratio[enough] = sums[enough] / base[enough][:, None]
    ratio[num_each != num_each[:, :, [baseline]]] = np.nan  # of other forecasts
    return _rounded(ratio.transpose(1, 2, 0))


def _weights(survey: RunSurvey) -> list[list[list[float | None]]]:
    """Mean weights [H][K−1][T]; a stretch without decisions shows the one before."""
    mean = np.full(survey.weights.shape, np.nan)
    seen = survey.num_weights > 0
    mean[seen] = survey.weights[seen] / survey.num_weights[seen][:, None, None]
    for t in range(1, NUM_INTERVALS):
        if not seen[t]:
            mean[t] = mean[t - 1]
    return _rounded(mean.transpose(1, 2, 0))


def _trailing(sums: Any) -> Any:
    total = np.cumsum(sums, axis=0)
    trailing = total.copy()
    trailing[TRAILING:] -= total[:-TRAILING]
    return trailing


def _rounded(values: Any) -> Any:
    """Nested lists with NaN as null and few digits."""
    if isinstance(values, np.ndarray):
        return [_rounded(value) for value in values]
    value = float(values)
    return None if np.isnan(value) else float(f"{value:.{_SIGNIFICANT}g}")

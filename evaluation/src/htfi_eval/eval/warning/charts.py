"""Charts of the page of `htfi eval warning`, and its main result in words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.warning import scores
from htfi.forecasting.warning.walk_forward import SESSIONS_A_YEAR
from htfi.library.charts.specs import (
    BarChart,
    Chart,
    Curve,
    CurveChart,
    DotChart,
    DotGroup,
    HeatMap,
    HistogramChart,
    TimeLines,
    TimeSpan,
)
from htfi_eval.eval.warning.judging import BASE_RATE, BUDGETS, MAIN_BUDGET, WARNING, WarningJudgement
from htfi_eval.results import Card

Array = NDArray[np.float64]

_CURVE_POINTS = 200
_FEW_EVENTS = 10
_NUM_BINS = 8
_LEAD_BINS = 11
_MAX_FITS_SHOWN = 14  # columns of the contributions


def charts(judged: Sequence[WarningJudgement]) -> list[Chart]:
    """All charts for the first kind of event; for others the probabilities through time and their ranking."""
    drawn: list[Chart] = []
    for place, one in enumerate(judged):
        drawn.append(_through_time(one))
        if place == 0:
            drawn += [
                _roc(one),
                _precision(one),
                _reliability(one),
                _leads(one),
                _caught(one),
                _features_used(one),
            ]
        drawn.append(_ranking(one))
    return drawn


def cards(judged: WarningJudgement) -> list[Card]:
    alerts, warning = judged.warning.alerts[MAIN_BUDGET], judged.warning
    return [
        Card(f"{warning.roc_auc:.2f}", f"ROC-AUC; 95%: {_ends(warning.roc_auc95)}"),
        Card(f"{warning.pr_auc:.2f}", f"PR-AUC; base rate: {judged.label.mean():.2f}"),
        Card(f"{alerts.num_caught} of {alerts.num_events}", f"detected; budget: {MAIN_BUDGET:g} false alarms a year"),
        Card(f"{alerts.false_alarms_a_year:.1f}", "false alarms per year"),
        Card(_share(alerts.precision), f"of alerts came true; base rate {judged.label.mean():.0%}"),
        Card(_days(alerts.median_lead_days), "median lead of detected events, sessions"),
    ]  # fmt: skip


def lead(judged: WarningJudgement) -> str:
    """The main result in one sentence, with its interval."""
    warning, alerts = judged.warning, judged.warning.alerts[MAIN_BUDGET]
    low, high = warning.roc_auc95
    chance = "better than chance" if low > 0.5 else "worse than chance" if high < 0.5 else "possibly chance"
    ahead = [
        model.name
        for model in judged.models.values()
        if model.name not in (WARNING, BASE_RATE) and model.behind95[0] > 0
    ]
    beside = (
        f"clearly better than {', '.join(ahead)}" if ahead else "not clearly better than any single measure"
    )
    return (
        f"At {alerts.false_alarms_a_year:.1f} false alarms a year the warning detected {alerts.num_caught} of "
        f"{alerts.num_events} events, a median of {_days(alerts.median_lead_days)} sessions before; "
        f"its ROC-AUC is {warning.roc_auc:.2f} ({low:.2f} … {high:.2f}), {chance} and {beside}."
        + (" So few events are no proof." if alerts.num_events < _FEW_EVENTS else "")
    )


def _through_time(judged: WarningJudgement) -> TimeLines:
    market, events = judged.market, judged.events
    first, end = int(judged.judged[0]), int(np.flatnonzero(events.at_risk)[-1]) + 1
    chance = np.where(events.at_risk, judged.warning.walked.chance, np.nan)[first:end]
    rate = judged.models[BASE_RATE].walked.chance[first:end]
    days = np.datetime_as_string(market.days[first:end], unit="D").tolist()
    marks = judged.warning.raised[MAIN_BUDGET]
    return TimeLines(
        f"Probability of an event: {judged.description}",
        "Gaps and shades: the event is under way. Marks: alerts on the budget of "
        f"{MAIN_BUDGET:g} false alarms a year.",
        days,
        [Curve("probability", chance.tolist()), Curve("past rate", rate.tolist(), quiet=True)],
        "%",
        spans=_spans(judged, first),
        marks=np.datetime_as_string(market.days[marks], unit="D").tolist(),
        mark_label=f"alerts at {MAIN_BUDGET:g} a year",
    )


def _spans(judged: WarningJudgement, first: int) -> list[TimeSpan]:
    """Each event from its start to the last session of stress before the next event."""
    events, days = judged.events, judged.market.days
    stressed = np.flatnonzero(events.in_stress)
    found: list[TimeSpan] = []
    for place, onset in enumerate(events.onsets.tolist()):
        until = int(events.onsets[place + 1]) if place + 1 < len(events.onsets) else len(days)
        mine = stressed[(stressed >= onset) & (stressed < until)]
        if onset >= first:
            begin, end = str(days[onset]), str(days[mine[-1]])
            found.append(TimeSpan(begin[:4], begin, end))
    return found


def _roc(judged: WarningJudgement) -> CurveChart:
    drawn: list[Curve] = []
    for name in _ranked(judged):
        x, y = _thinned(*scores.roc(judged.chance(name), judged.label))
        drawn.append(Curve(name, y.tolist(), x=x.tolist()))
    note = f"Sessions before {judged.description}, detected at each threshold, against quiet sessions with an alarm."
    return CurveChart("ROC", note, [], drawn, "share of quiet sessions", "recall", True, "chance")


def _precision(judged: WarningJudgement) -> CurveChart:
    drawn: list[Curve] = []
    for name in _ranked(judged):
        recall, precision = scores.precision_recall(judged.chance(name), judged.label)
        kept = recall >= 0.02  # the first few sessions give any precision
        x, y = _thinned(recall[kept], precision[kept])
        drawn.append(Curve(name, y.tolist(), x=x.tolist()))
    rate = float(judged.label.mean())
    drawn.append(Curve("base rate", [rate, rate], x=[0.0, 1.0], quiet=True))
    note = "Of sessions at each threshold, the share before an event; each session of an event counts."
    return CurveChart("Precision and recall", note, [], drawn, "recall", "precision")


def _reliability(judged: WarningJudgement) -> CurveChart:
    stated, true, num = scores.reliability(judged.chance(WARNING), judged.label, _NUM_BINS)
    curve = Curve("warning", true.tolist(), x=stated.tolist(), counts=num.tolist())
    note = "Eighths of the sessions by stated probability, and the share before an event."
    return CurveChart(
        "Calibration of the probability",
        note,
        [],
        [curve],
        "stated probability",
        "share before an event",
        True,
    )


def _leads(judged: WarningJudgement) -> HistogramChart:
    leads = np.array(judged.warning.alerts[MAIN_BUDGET].lead_days)
    horizon = judged.events.horizon
    count, _ = np.histogram(leads, bins=min(_LEAD_BINS, horizon), range=(0, horizon))
    note = f"Of the {len(leads)} events detected: sessions from the first true alert to the onset."
    return HistogramChart(
        "Lead time", note, (count / max(len(leads), 1)).tolist(), even=False, low=0, high=horizon,
        x_label="sessions before the onset",
    )  # fmt: skip


def _caught(judged: WarningJudgement) -> DotChart:
    dots: list[DotGroup] = []
    for name in _ranked(judged):
        alerts = [judged.models[name].alerts[budget] for budget in BUDGETS]
        ends = [scores.share_interval95(one.num_caught, one.num_events) for one in alerts]
        dots.append(
            DotGroup(name, [one.hit_rate for one in alerts], [e[0] for e in ends], [e[1] for e in ends])
        )
    names = [f"{budget:g} a year" for budget in BUDGETS]
    horizon = judged.events.horizon
    note = (
        "By budget of false alarms, with Wilson's intervals. An alert covers "
        f"{horizon} sessions, so {SESSIONS_A_YEAR / horizon:.1f} a year is the maximum; a larger budget is a "
        "permanent alert."
    )
    return DotChart("Share of events detected", note, names, dots, unit="%")


def _ranking(judged: WarningJudgement) -> BarChart:
    names = _ranked(judged)
    models = [judged.models[name] for name in names]
    return BarChart(
        f"ROC-AUC: {judged.description}",
        "Above one half is better than chance; 95% intervals by bootstrap of one-year blocks.",
        names,
        [model.roc_auc for model in models],
        [model.roc_auc95[0] for model in models],
        [model.roc_auc95[1] for model in models],
        zero=0.5,
    )


def _features_used(judged: WarningJudgement) -> HeatMap:
    walked = judged.warning.walked
    step = -(-len(walked.fits) // _MAX_FITS_SHOWN)
    places = range(len(walked.fits) - 1, -1, -step)
    columns = [str(judged.market.years[walked.fits[place]]) for place in reversed(places)]
    values = walked.coefficients[list(reversed(places))].T
    return HeatMap(
        "Coefficients by year",
        "Log odds per standard deviation of each feature, by year of fit; warm colours raise the probability.",
        list(judged.warning.features),
        columns,
        values.tolist(),
    )


def _ranked(judged: WarningJudgement) -> list[str]:
    return [name for name in judged.models if name != BASE_RATE]


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    if len(x) <= _CURVE_POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, _CURVE_POINTS).astype(int))
    return x[kept], y[kept]


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.2f} … {ends[1]:.2f}"


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0%}"


def _days(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0f}"

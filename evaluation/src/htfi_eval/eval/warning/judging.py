"""Scores of one kind of event: the warning and its baselines walked forward, their scores and intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation.leak import find_leaks
from htfi.forecasting.warning import scores
from htfi.forecasting.warning.events import StressEvents
from htfi.forecasting.warning.scores import AlertScores
from htfi.forecasting.warning.walk_forward import (
    WalkForwardConfig,
    WalkForwardResult,
    raise_alerts,
    walk_forward_chances,
)
from htfi_eval.eval.warning.data import WarningMarket, features_of, with_changed_future

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Row = dict[str, Any]

WARNING, BASE_RATE, PLANTED_LEAK = "warning", "base rate", "planted future"
BUDGETS = (2.0, 4.0, 12.0)  # false alarms a year
MAIN_BUDGET = 4.0
# The inputs of each; names that a market lacks are skipped. None: all inputs.
MODELS: Mapping[str, tuple[str, ...] | None] = {
    WARNING: None,
    "VIX alone": ("VIX",),
    "VIX, change of 5": ("VIX, change of 5",),
    "volatility of 22": ("volatility 22",),
    BASE_RATE: (),
}
_BLOCK_SESSIONS = 252
_NUM_DRAWS = 400
_AHEAD = 11  # sessions that the planted leak looks ahead


@dataclass(frozen=True, slots=True, eq=False)
class WarningModel:
    """One model's walk and scores over the sessions at risk."""

    name: str
    features: tuple[str, ...]
    walked: WalkForwardResult
    roc_auc: float
    roc_auc95: tuple[float, float]
    behind95: tuple[float, float]  # the warning's ROC-AUC less this one's
    pr_auc: float
    brier: float
    raised: Mapping[float, Places]
    alerts: Mapping[float, AlertScores]


@dataclass(frozen=True, slots=True, eq=False)
class WarningJudgement:
    """An event's models on the same sessions. judged [n]: their places; label [n]."""

    name: str
    description: str  # description of the event
    market: WarningMarket
    events: StressEvents
    judged: Places
    label: Array
    models: Mapping[str, WarningModel]

    @property
    def warning(self) -> WarningModel:
        return self.models[WARNING]

    @property
    def onsets(self) -> Places:
        """Of the events with sessions to warn in."""
        onsets = self.events.onsets
        return onsets[(onsets > self.judged[0]) & (onsets <= self.events.decided.max())]

    def chance(self, name: str) -> Array:
        return self.models[name].walked.chance[self.judged]


def judge(
    name: str, description: str, market: WarningMarket, features: Mapping[str, Array], events: StressEvents,
    config: WalkForwardConfig, seed: int, progress: Callable[[str], None],
) -> WarningJudgement | None:  # fmt: skip
    """None if nothing can be scored: before the first fit, or without both outcomes."""
    walks: dict[str, tuple[tuple[str, ...], WalkForwardResult]] = {}
    for model, wanted in MODELS.items():
        known = tuple(features) if wanted is None else tuple(one for one in wanted if one in features)
        if wanted and not known:
            continue
        walks[model] = (
            known,
            walk_forward_chances(_columns(features, known, len(market.days)), events, market.years, config),
        )
    chances = {model: walked.chance for model, (_, walked) in walks.items()}
    judged = np.flatnonzero(np.isfinite(events.label) & np.isfinite(chances[WARNING]))
    label = events.label[judged]
    if not len(judged) or label.min() == label.max():
        return None
    first, last = int(judged[0]), int(events.decided.max())
    models: dict[str, WarningModel] = {}
    for model, (known, walked) in walks.items():
        progress(f"{name}: {model}")
        raised = {
            budget: places[places <= last]
            for budget, places in raise_alerts(walked, events, BUDGETS, config).items()
        }
        own = chances[model][judged]
        ranks = model != BASE_RATE  # a rate that only drifts cannot rank
        models[model] = WarningModel(
            model, known, walked,
            scores.roc_auc(own, label) if ranks else 0.5,
            _interval(scores.roc_auc, own, label, seed) if ranks else (0.5, 0.5),
            _gap(chances[WARNING][judged], own, label, seed) if ranks else (float("nan"), float("nan")),
            scores.average_precision(own, label) if ranks else float(label.mean()),
            scores.brier(own, label),
            raised,
            {budget: scores.score_alerts(places, events, first, last) for budget, places in raised.items()},
        )  # fmt: skip
    return WarningJudgement(name, description, market, events, judged, label, models)


def check_leaks(
    market: WarningMarket, make: Callable[[WarningMarket], StressEvents], config: WalkForwardConfig, seed: int
) -> dict[str, str]:
    """Models whose probabilities change with the future, with the day; the planted leak must be among them."""
    num = len(market.days)

    def chances_of(fields: Mapping[str, Array]) -> dict[str, Array]:
        other = with_changed_future(market, fields["close"])
        events, known = make(other), features_of(other)
        first = next(iter(known.values()))
        cheat = {**known, PLANTED_LEAK: np.append(first[_AHEAD:], np.full(_AHEAD, np.nan))}
        return {
            name: walk_forward_chances(_columns(of, tuple(of), num), events, other.years, config).chance
            for name, of in ((WARNING, known), (PLANTED_LEAK, cheat))
        }

    cuts = (num // 2, num - 2 * _BLOCK_SESSIONS if num > 4 * _BLOCK_SESSIONS else 3 * num // 4)
    found = find_leaks(chances_of, {"close": market.closes}, cuts, np.random.Generator(np.random.PCG64(seed)))
    return {name: str(market.days[t]) for name, t in found.items()}


def rows_of(judged: WarningJudgement) -> list[Row]:
    """A row per model; figures separated by slashes are those of the three budgets."""
    base = judged.models[BASE_RATE].brier
    rows: list[Row] = []
    for model in judged.models.values():
        alerts = [model.alerts[budget] for budget in BUDGETS]
        ranks = model.name != BASE_RATE
        rows.append(
            {
                "event": judged.name,
                "model": model.name,
                "ROC-AUC": f"{model.roc_auc:.2f}",
                "95%": _between(model.roc_auc95) if ranks else "",
                "warning − model": "" if model.name in (WARNING, BASE_RATE) else _between(model.behind95),
                "PR-AUC": f"{model.pr_auc:.3f}",
                "Brier": f"{model.brier:.4f}",
                "skill": f"{1 - model.brier / base:.1%}" if base else "",
                "false alarms/year": " / ".join(f"{one.false_alarms_a_year:.1f}" for one in alerts),
                "detected": " / ".join(str(one.num_caught) for one in alerts) + f" of {alerts[0].num_events}",
                "true alerts": " / ".join(_percent(one.precision) for one in alerts),
                "lead": " / ".join(_whole(one.median_lead_days) for one in alerts),
            }
        )
    return rows


def metrics_of(judged: WarningJudgement, prefix: str = "") -> dict[str, float | None]:
    """The warning's figures by id; alerts are those of the main budget, others end in their budget."""
    warning = judged.warning
    main = warning.alerts[MAIN_BUDGET]
    caught = scores.share_interval95(main.num_caught, main.num_events)
    found: dict[str, float | None] = {
        "roc_auc": warning.roc_auc,
        "roc_auc_low": warning.roc_auc95[0],
        "roc_auc_high": warning.roc_auc95[1],
        "pr_auc": warning.pr_auc,
        "base_rate": float(judged.label.mean()),
        "brier": warning.brier,
        "brier_base_rate": judged.models[BASE_RATE].brier,
        "num_events": float(main.num_events),
        "alerts_true": main.precision,
        "false_alarms_a_year": main.false_alarms_a_year,
        "hit_rate": main.hit_rate,
        "hit_rate_low": caught[0],
        "hit_rate_high": caught[1],
        "median_lead_days": main.median_lead_days,
    }
    for model, key in (("VIX alone", "vix"), ("volatility of 22", "volatility")):
        if model in judged.models:
            found[f"roc_auc_{key}"] = judged.models[model].roc_auc
    for budget, alerts in warning.alerts.items():
        if budget != MAIN_BUDGET:
            found[f"false_alarms_a_year_{budget:g}"] = alerts.false_alarms_a_year
            found[f"hit_rate_{budget:g}"] = alerts.hit_rate
            found[f"median_lead_days_{budget:g}"] = alerts.median_lead_days
    return {prefix + key: value for key, value in found.items() if value is not None and np.isfinite(value)}


def trials_of(judged: WarningJudgement, config: WalkForwardConfig) -> list[tuple[Row, dict[str, float]]]:
    """Every model as one trial."""
    return [
        (
            {
                "event": judged.description,
                "model": model.name,
                "features": list(model.features),
                **asdict(config),
            },
            {"roc_auc": model.roc_auc, "pr_auc": model.pr_auc, "brier": model.brier},
        )
        for model in judged.models.values()
    ]


def _columns(features: Mapping[str, Array], names: Sequence[str], num: int) -> Array:
    return np.column_stack([features[name] for name in names]) if names else np.empty((num, 0))


def _interval(score: scores.ScoreFunction, chance: Array, label: Array, seed: int) -> tuple[float, float]:
    rng = np.random.Generator(np.random.PCG64(seed))
    return scores.interval95(
        lambda places: score(chance[places], label[places]), len(label), _block(label), rng, _NUM_DRAWS
    )


def _gap(warning: Array, other: Array, label: Array, seed: int) -> tuple[float, float]:
    def apart(places: Places) -> float:
        ours, theirs = (scores.roc_auc(one[places], label[places]) for one in (warning, other))
        return ours - theirs

    rng = np.random.Generator(np.random.PCG64(seed))
    return scores.interval95(apart, len(label), _block(label), rng, _NUM_DRAWS)


def _block(label: Array) -> int:
    return min(_BLOCK_SESSIONS, max(len(label) // 4, 1))


def _between(ends: tuple[float, float]) -> str:
    return "" if np.isnan(ends).any() else f"{ends[0]:.2f}…{ends[1]:.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{share:.0%}"


def _whole(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0f}"

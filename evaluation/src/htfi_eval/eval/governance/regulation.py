"""What the monitors of market abuse find in simulated order flow, and what they find of honest parties by mistake.

Thresholds were chosen on `TUNING_SEEDS`; what is reported comes from `REPORTED_SEEDS`, which took no part in that.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from htfi.governance.regulation.checks.surveillance import surveillance_checks
from htfi.governance.regulation.monitor import run_checks
from htfi.governance.regulation.thresholds import SurveillanceThresholds
from htfi_eval.results import PartFigures
from htfi_train.simulation.order_flow.abusive import (
    ABUSER,
    ACCOMPLICE,
    STRENGTHS,
    AbusePattern,
    Strength,
    add_abuser,
)
from htfi_train.simulation.order_flow.honest import add_honest_parties
from htfi_train.simulation.order_flow.session import SessionSpec, TradingSession

TUNING_SEEDS = range(6)
REPORTED_SEEDS = range(100, 108)
QUICK_SEEDS = range(100, 102)


@dataclass(slots=True)
class DetectionCounts:
    """Sessions in which the abuser was found, by pattern and strength; findings on honest parties, by check."""

    num_sessions: Counter[tuple[AbusePattern, str]] = field(default_factory=Counter[tuple[AbusePattern, str]])
    num_found: Counter[tuple[AbusePattern, str]] = field(default_factory=Counter[tuple[AbusePattern, str]])
    false_findings: Counter[str] = field(default_factory=Counter[str])
    num_party_days: int = 0
    num_events: int = 0

    @property
    def detection(self) -> float:
        """The mean over patterns and strengths."""
        shares = [self.num_found[key] / num for key, num in self.num_sessions.items()]
        return sum(shares) / len(shares)

    @property
    def false_rate(self) -> float:
        """Findings on honest parties, by party and day."""
        return sum(self.false_findings.values()) / max(1, self.num_party_days)


def measure(seeds: Iterable[int], thresholds: SurveillanceThresholds | None = None) -> DetectionCounts:
    """One honest session of each seed, and one for each pattern and strength with an abuser in it."""
    counts = DetectionCounts()
    checks = surveillance_checks(thresholds)
    for seed in seeds:
        _judge_session(seed, None, None, checks, counts)
        for pattern in AbusePattern:
            for strength in STRENGTHS:
                _judge_session(seed, pattern, strength, checks, counts)
    return counts


def figures(quick: bool) -> PartFigures:
    """Detection by pattern and strength, and false findings by check."""
    tuned = None if quick else measure(TUNING_SEEDS)
    counts = measure(QUICK_SEEDS if quick else REPORTED_SEEDS)
    rows = [_row(pattern, counts) for pattern in AbusePattern]
    notes = [
        f"monitors: {counts.num_party_days:,} days of honest parties, {counts.num_events:,} order events; "
        "simulated flow, seeds that took no part in choosing thresholds"
    ]
    if tuned is not None:
        notes.append(
            f"monitors on the seeds that thresholds were chosen on: detection {tuned.detection:.3f}, "
            f"false findings {tuned.false_rate:.4f} a party and day"
        )
    return PartFigures(
        title="Market abuse in simulated order flow",
        metrics={"regulation_detection": counts.detection, "regulation_false_findings": counts.false_rate},
        rows=rows,
        notes=notes,
    )


def _judge_session(
    seed: int,
    pattern: AbusePattern | None,
    strength: Strength | None,
    checks: Sequence[Any],
    counts: DetectionCounts,
) -> None:
    session = TradingSession(SessionSpec(seed))
    honest = add_honest_parties(session)
    if pattern is not None and strength is not None:
        add_abuser(session, pattern, strength)
        counts.num_sessions[pattern, strength.name] += 1
    results, read = run_checks(session.run(), checks)
    counts.num_events += read.num_order_events
    counts.num_party_days += len(honest)
    is_found = False
    for result in results:
        for finding in result.findings:
            if ABUSER in finding.where.party or ACCOMPLICE in finding.where.party:
                is_found |= result.id == pattern
            else:
                counts.false_findings[result.id] += 1
    if is_found and pattern is not None and strength is not None:
        counts.num_found[pattern, strength.name] += 1


def _row(pattern: AbusePattern, counts: DetectionCounts) -> dict[str, Any]:
    row: dict[str, Any] = {"pattern": pattern.value}
    for strength in STRENGTHS:
        key = (pattern, strength.name)
        row[strength.name] = counts.num_found[key] / max(1, counts.num_sessions[key])
    row["false findings"] = counts.false_findings[pattern.value]
    return row

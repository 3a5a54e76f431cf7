"""How long a hold takes to hold, as figures: of stops that are asked for, and of breakers that trip.

A stop counts from just before its request is written to the arrival of the last forecast that is still released. A trip
counts from just before the bars that trip a breaker are written to the arrival of the last decision on these bars,
which are all withheld, or of the last forecast that is still released, whichever is later.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from htfi.domain.errors import DependencyUnavailable
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.config import MEANINGS
from htfi.governance.control.entries import BreakerMoved
from htfi.wiring.bundles import activate_bundle, draft_bundle, propose_bundle, sign_bundle, write_draft
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import create_signing_key
from htfi_eval.bench.governance.bar_feed import FrozenBars
from htfi_eval.results import PartFigures

NUM_EACH, NUM_QUICK = 100, 3
BREAKER = "frozen_feed"
# A breaker of the whole firm that bars which repeat themselves once trip; the others are off, so that it is this one.
_LIMITS = (
    f'breakers.{BREAKER}.scopes=["firm"]',
    f"breakers.{BREAKER}.false_alarms_a_year=1000.0",
    *(f"breakers.{name}.is_on=false" for name in MEANINGS if name != BREAKER),
)


def stop_figures(
    title: str, place: str, what: str, requested_ms: Sequence[float], tripped_ms: Sequence[float]
) -> PartFigures:
    """The medians and 99th percentiles of both, and of the slower of the two as `stop_PLACE_…`."""
    rows, metrics = list[dict[str, object]](), dict[str, float | None]()
    for name, how, times_ms in (
        ("request", "stop by request", requested_ms),
        ("trip", "breaker's trip", tripped_ms),
    ):
        p50, p99 = (float(np.percentile(times_ms, q)) for q in (50, 99))
        metrics |= {f"{name}_{place}_p50_ms": p50, f"{name}_{place}_p99_ms": p99}
        rows.append(
            {
                "what": f"{how}, {what}",
                "num": len(times_ms),
                "p50 ms": p50,
                "p99 ms": p99,
                "max ms": max(times_ms),
            }
        )
    for q in ("p50", "p99"):
        both = (metrics[f"request_{place}_{q}_ms"], metrics[f"trip_{place}_{q}_ms"])
        metrics[f"stop_{place}_{q}_ms"] = max(one for one in both if one is not None)
    return PartFigures(title=title, metrics=metrics, rows=rows)


def pause_until_any_phase(number: int, step_s: float) -> None:
    """Wait a part of the time between two bars, so that stops fall at any place between them."""
    time.sleep(np.random.default_rng(number).uniform(0.0, step_s))


def create_officer(folder: Path) -> str:
    """Make the key of the one officer; its public half in words."""
    return str(create_signing_key(_officer_key(folder), "officer"))


def activate_breaker(folder: Path, governance: Path) -> None:
    """Put a bundle with the one breaker in force in that officer's governance folder. Raises: as `activate_bundle`."""
    draft = folder / "breaker.toml"
    write_draft(draft, draft_bundle(governance, "officer", _LIMITS))
    sign_bundle(draft, _officer_key(folder))
    propose_bundle(governance, draft)
    activate_bundle(governance, draft)


def check_trip(run: Path, frozen: FrozenBars) -> int:
    """The instant of the bars that tripped the breaker last. Raises: DependencyUnavailable where it was not these."""
    moved = [one for one in governance_entries(run) if isinstance(one, BreakerMoved)]
    if not moved or moved[-1].state is not BreakerState.OPEN or moved[-1].at_ns != frozen.end_ns:
        raise DependencyUnavailable(
            "the breaker whose trips are timed did not trip by the bars that were meant to"
        )
    return moved[-1].at_ns


def _officer_key(folder: Path) -> Path:
    return folder / "officer.key"

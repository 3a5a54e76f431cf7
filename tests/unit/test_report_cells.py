"""The cells of a run's report: the same sums as from arrays, in bounded memory, and a table that reads."""

import numpy as np

from htfi.apps.cli.report.cells import CoverageCells, MaturedBatch, cells_html
from htfi.domain.time import NS_PER_DAY, NS_PER_S

LEVELS = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
NORMAL = np.array([-2.326, -1.645, 0.0, 1.645, 2.326])


def _filled(
    num: int, wide: float = 1.0, step_ns: int = NS_PER_DAY, size: int = 64, first_ns: int = 0
) -> CoverageCells:
    """One series with a forecast a step; outcomes are Gaussian, bands `wide` times theirs."""
    dice, cells = np.random.Generator(np.random.PCG64(3)), CoverageCells(1)
    for first in range(0, num, size):
        ordinal = list(range(first, min(first + size, num)))
        made_ns = first_ns + np.array(ordinal, np.int64) * step_ns
        for at in made_ns.tolist():
            cells.count_instant(at)
        width = 1.0 + 0.2 * dice.random(len(ordinal))
        quantiles = np.stack([wide * width[:, None] * NORMAL, width[:, None] * NORMAL], axis=1)
        outcome = width * dice.standard_normal(len(ordinal))
        cells.add(
            MaturedBatch(
                series=["S/1d" if step_ns == NS_PER_DAY else "S/1h"] * len(ordinal),
                ordinal=ordinal,
                made_ns=made_ns,
                horizon=np.zeros(len(ordinal), np.intp),
                regime=np.zeros(len(ordinal), np.intp),
                event=np.full(len(ordinal), -1, np.intp),
                stretch=np.array([k * 240 // num for k in ordinal], np.intp),
                quantiles=quantiles,
                outcome=outcome,
                crps=np.ones((len(ordinal), 2)) * [1.0, 2.0],
                levels=LEVELS,
                horizons=(1,),
                baseline=1,
            )
        )
    return cells


def test_a_calibrated_run_has_no_cell_off():
    rows = _filled(3000).rows(0, 1)
    by_cell = {(row.dimension, row.cell): row for row in rows}
    every = by_cell["all", "all"]
    assert every.num == 3000
    assert abs(every.coverage90 - 0.9) < 0.02
    assert every.coverage90_ends[0] < 0.9 < every.coverage90_ends[1]
    assert every.crps_ratio == 0.5
    assert not any(row.off for row in rows)
    assert (
        by_cell["weekday", "Wednesday"].num == 429
    )  # the day whose end 1 January 1970, 0:00 UTC, falls into
    assert by_cell["year", "1970"].num == 365
    assert not any(row.dimension == "hour" for row in rows)
    thirds = [by_cell["volatility", name].num for name in ("narrow third", "middle third", "wide third")]
    assert sum(thirds) == 3000
    assert min(thirds) > 700


def test_bands_that_are_too_narrow_are_marked():
    cells = _filled(3000, wide=0.7)
    every = cells.rows(0, 1)[0]
    assert set(every.off) == {"coverage 90", "below q05", "below q01"}
    html = cells_html(cells, (1,), "random walk")
    assert 'class="off"' in html
    assert "coverage 90, below q05, below q01" in html
    assert "no of" not in html


def test_a_day_that_ends_at_midnight_in_new_york_is_that_day():
    monday_ends_ns = int(np.datetime64("2023-07-04T04:00", "ns").astype(np.int64))
    weekdays = [
        row.cell for row in _filled(5, first_ns=monday_ends_ns).rows(0, 1) if row.dimension == "weekday"
    ]
    assert weekdays == ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]


def test_hours_are_drawn_where_a_run_has_several():
    hourly = cells_html(_filled(6000, step_ns=3_600 * NS_PER_S), (1,), "random walk")
    assert 'class="heat dense"' in hourly
    assert "heat" not in cells_html(_filled(300), (1,), "random walk")


def test_sums_do_not_depend_on_how_outcomes_are_grouped():
    one, other = _filled(500, size=500), _filled(500, size=7)
    assert one.sums.shape == other.sums.shape
    assert one.sums[0].sum() == other.sums[0].sum() > 0
    assert len(one.past["S/1d", 0].missed) == 1


def test_a_run_without_outcomes_says_so():
    assert "No outcome is known yet" in cells_html(CoverageCells(1), (1,), "random walk")

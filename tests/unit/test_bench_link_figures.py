"""What `htfi bench link` makes of its runs."""

import pytest

from htfi.library.charts.figures import chart_html
from htfi_eval.bench.link.figures import charts, link_speedup, metrics, num_unlike, planner_regret, rows
from htfi_eval.bench.link.runs import ALL_PLACEMENTS, LinkMeasurement, PlacementChoice, PlacementRun
from htfi_eval.bench.link.runs import steps_regret as regret_of_steps
from htfi_eval.bench.link.setup import EdgeShare, fleet_result


def run(**ms: float) -> PlacementRun:
    """One request that took so long in each manner."""
    return {
        manner: LinkMeasurement("r", (1, 2, 3), 1.0, ms.get(manner.name, 100.0), 10, "cloud1, plain")
        for manner in ALL_PLACEMENTS
    }


def test_regret_is_against_the_best_single_way_over_all_kinds() -> None:
    of = {
        "view": [run(PLANNED=55.0, PLAIN=50.0, FLIGHT=80.0)],
        "path": [run(PLANNED=66.0, PLAIN=90.0, FLIGHT=40.0)],
    }
    assert planner_regret(of) == pytest.approx(121.0 / 120.0 - 1.0)  # in flight 120, plain 140


def test_a_typical_time_is_the_median_of_its_kind() -> None:
    of = {"view": [run(LOCKSTEP=one, FLIGHT=50.0) for one in (100.0, 110.0, 900.0)]}
    assert link_speedup(of, PlacementChoice.FLIGHT, PlacementChoice.LOCKSTEP) == pytest.approx(2.2)


def test_windows_in_flight_count_from_20_ms_on_and_the_worst_stands() -> None:
    near = {"view": [run(LOCKSTEP=50.0)]}
    far = {"view": [run(LOCKSTEP=150.0)]}
    farther = {"view": [run(LOCKSTEP=170.0)]}
    found = metrics({"shipped": {5.0: near, 20.0: farther, 200.0: far}})
    assert found["inflight_vs_lockstep"] == pytest.approx(1.5)
    assert "inflight_vs_lockstep" not in metrics({"shipped": {5.0: near}})


def test_an_answer_that_differs_from_the_same_request_plainly_is_counted() -> None:
    odd = run()
    odd[PlacementChoice.FLIGHT] = LinkMeasurement("r", (1, 2, 4), 1.0, 1.0, 1, "")
    assert num_unlike({"shipped": {0.0: {"view": [run(), odd]}}}) == (1, 10)


def test_a_row_for_each_manner_and_a_chart_of_all() -> None:
    runs = {"shipped": {0.0: {"view": [run()]}, 20.0: {"view": [run()]}}}
    told = rows(runs)
    assert len(told) == 2 * len(ALL_PLACEMENTS)
    assert told[0]["tokens/s"] == pytest.approx(30.0)
    assert told[0]["chosen"] == "1 plain"
    (chart,) = charts(runs)
    assert [curve.name for curve in chart.curves] == [*(one.value for one in ALL_PLACEMENTS[1:]), "planned"]
    assert chart_html(chart).count('<path class="line') == len(ALL_PLACEMENTS)


def test_steps_are_compared_with_the_best_way_of_each_step() -> None:
    def passed(*ms: float) -> list[list[LinkMeasurement]]:
        return [[LinkMeasurement("r", (1,), 1.0, one, 1, "")] for one in ms]

    assert regret_of_steps([passed(10, 20, 30), passed(10, 40, 25), passed(30, 15, 40)]) == pytest.approx(0.2)


def test_a_fleet_is_judged_by_its_slowest_edge() -> None:
    fleet = fleet_result(
        [EdgeShare(100, 5, 10.0, 20.0), EdgeShare(100, 5, 10.0, 20.0), EdgeShare(40, 2, 20.0, 50.0)], 2.0
    )
    assert fleet.tokens_per_s == pytest.approx(120.0)
    assert fleet.unfairness == pytest.approx(2.5)

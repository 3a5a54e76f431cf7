"""Surprises in usual sizes: a robust scale of what was known before, and nothing of what came after."""

import random

import pytest

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.surprises import (
    MAX_SURPRISE,
    MEDIAN_TO_DEVIATION,
    MIN_PAST,
    SurpriseScales,
    surprises,
)


def figure(place: int, gap: float | None, name: str = "CPI m/m", **more: str) -> ScheduledEvent:
    actual = None if gap is None else 1.0 + gap
    return ScheduledEvent(
        time_ns=place * 1_000, kind="us_cpi", name=name, currency="USD", actual=actual, forecast=1.0, **more
    )  # type: ignore[arg-type]


def test_a_surprise_is_its_gap_over_the_median_size_of_those_before() -> None:
    scales = SurpriseScales()
    for place, gap in enumerate((0.1, -0.2, 0.3, -0.4)):
        assert scales.surprise(figure(place, 0.5)) is None  # too few yet
        scales.add(figure(place, gap))
    assert MIN_PAST == 4
    assert scales.surprise(figure(9, 0.5)) == pytest.approx(0.5 / (MEDIAN_TO_DEVIATION * 0.25))
    assert scales.surprise(figure(9, -0.5)) == pytest.approx(-0.5 / (MEDIAN_TO_DEVIATION * 0.25))
    assert scales.surprise(figure(9, None)) is None


def test_one_wild_figure_changes_the_scale_little_and_counts_as_the_largest() -> None:
    scales = SurpriseScales()
    for place in range(20):
        scales.add(figure(place, 0.1 if place % 2 else -0.1))
    before = scales.surprise(figure(30, 0.1))
    assert scales.surprise(figure(30, 1e9)) == MAX_SURPRISE
    scales.add(figure(30, 1e3))
    assert before == pytest.approx(1 / MEDIAN_TO_DEVIATION)
    assert scales.surprise(figure(31, 0.1)) == pytest.approx(1 / MEDIAN_TO_DEVIATION)


def test_where_most_surprises_are_nil_the_mean_size_holds() -> None:
    scales = SurpriseScales()
    for place in range(10):
        scales.add(figure(place, 0.25 if place == 3 else 0.0))
    assert scales.surprise(figure(30, 0.25)) == MAX_SURPRISE
    assert scales.surprise(figure(30, 0.0)) == 0.0


def test_figures_that_never_surprised_have_no_usual_size() -> None:
    scales = SurpriseScales()
    for place in range(10):
        scales.add(figure(place, 0.0))
    assert scales.surprise(figure(30, 0.25)) is None


def test_figures_of_several_names_and_companies_have_scales_of_their_own() -> None:
    small = [figure(place, 0.1, "CPI m/m (SEP)") for place in range(10)]
    large = [figure(place, 5.0, "CPI y/y") for place in range(10)]
    company = [figure(place, 50.0, "CPI m/m", symbol="AAPL") for place in range(10)]
    asked = [figure(20, 0.1, "CPI m/m (OCT)"), figure(20, 5.0, "CPI y/y"), figure(20, 50.0, symbol="AAPL")]
    found = {one.event: one.size for one in surprises([*small, *large, *company, *asked])}
    assert [found[one] for one in asked] == [pytest.approx(1 / MEDIAN_TO_DEVIATION)] * 3


def test_no_surprise_sees_a_later_one_or_another_of_its_instant() -> None:
    random_gaps = random.Random(7)
    events = [figure(place // 2, random_gaps.gauss(0, 1)) for place in range(60)]
    whole = [(one.event, one.size) for one in surprises(events)]
    assert len(whole) > 40
    for place in (20, 31, 46):
        part = [(one.event, one.size) for one in surprises(events[:place])]
        assert whole[: len(part)] == part


def test_normal_surprises_are_one_usual_size_large() -> None:
    normal = random.Random(3)
    sizes = [one.size for one in surprises([figure(place, normal.gauss(0, 0.2)) for place in range(600)])]
    assert len(sizes) == 596
    deviation = (sum(size * size for size in sizes) / len(sizes)) ** 0.5
    assert (
        0.9 < deviation < 1.25
    )  # 2.9% is its standard error: a false alarm in a thousand runs, with seeds free

"""Drivers are the features furthest from usual; what is usual is learnt bar by bar."""

import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from found_drivers import drivers_of, find_drivers, learn
from htfi.narrative.rationale import choice, drivers
from htfi.narrative.rationale.drivers import FeatureBaseline


def test_drivers_are_ranked_by_distance_on_the_log_scale() -> None:
    usual = {"spread_bps": 1.0, "depth": 1.0, "realised_vol_5m": 1.0, "range": 1.0}
    features = {"spread_bps": 2.0, "depth": 0.1, "realised_vol_5m": -5.0, "range": 1.1}
    found = find_drivers(features, usual)
    assert [(driver.feature, round(driver.ratio, 9)) for driver in found] == [
        ("depth", 0.1),
        ("realised_vol_5m", 5.0),
        ("spread_bps", 2.0),
    ]
    assert found[1].value == -5.0


def test_a_family_is_told_once_by_its_strongest_member() -> None:
    features = {"realised_vol_5m": 3.0, "realised_vol_30m": 4.0, "spread_bps": 2.0}
    found = find_drivers(features, dict.fromkeys(features, 1.0))
    assert [driver.feature for driver in found] == ["realised_vol_30m", "spread_bps"]


def test_levels_zeros_and_unknown_features_drive_nothing() -> None:
    assert find_drivers({"mid": 9.0, "a": 0.0, "b": 9.0, "c": 9.0}, {"mid": 1.0, "a": 1.0, "b": 0.0}) == []


def test_usual_speaks_only_after_enough_bars_and_is_their_mean_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("htfi.narrative.rationale.drivers.USUAL_MIN_BARS", 3)
    usual = FeatureBaseline()
    for size in (1.0, -2.0):
        learn(usual, "SPX/1d", {"a": size})
    assert drivers_of(usual, "SPX/1d", {"a": 9.0}) is None
    learn(usual, "SPX/1d", {"a": 6.0})
    (driver,) = drivers_of(usual, "SPX/1d", {"a": 9.0}) or ()
    assert driver.usual == pytest.approx(3.0)
    assert drivers_of(usual, "VIX/1d", {"a": 9.0}) is None


def test_usual_follows_a_change_with_its_half_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.narrative.rationale.drivers.USUAL_HALF_LIFE_BARS", 10.0)
    usual = FeatureBaseline()
    for _ in range(500):
        learn(usual, "s", {"a": 1.0})
    for _ in range(10):
        learn(usual, "s", {"a": 3.0})
    assert usual.state()["means"]["s"]["a"] == pytest.approx(2.0, abs=1e-9)


def test_restored_usual_goes_on_bit_for_bit() -> None:
    whole, first, second = FeatureBaseline(), FeatureBaseline(), FeatureBaseline()
    rows = [{"a": 0.1 * n, "b": -1.0 / (n + 1)} for n in range(50)]
    for n, row in enumerate(rows):
        learn(whole, "s", row)
        if n < 25:
            learn(first, "s", row)
    second.restore(json.loads(json.dumps(first.state())))
    for row in rows[25:]:
        learn(second, "s", row)
    assert second.state() == whole.state()


def test_features_of_equal_distance_are_ranked_by_name_the_last_first() -> None:
    found = find_drivers({"a": 2.0, "c": 2.0, "b": 0.5}, {"a": 1.0, "b": 1.0, "c": 1.0})
    assert [driver.feature for driver in found] == ["c", "b", "a"]


def test_series_learn_and_are_compared_each_by_themselves() -> None:
    together, alone = FeatureBaseline(), FeatureBaseline()
    names = ("a", "b", "c")
    rng = np.random.default_rng(1)
    for bar in range(40):
        rows = rng.lognormal(size=(3, 3))
        rows[bar % 3, 1] = np.nan  # not defined
        together.learn(["x", "y", "z"], names, rows.reshape(-1))
        for series, row in zip("xyz", rows.tolist(), strict=True):
            learn(alone, series, {n: v for n, v in zip(names, row, strict=True) if v == v})
    assert together.state() == alone.state()
    rows = 5.0 * rng.lognormal(size=(3, 3))
    found, usual, counts = np.zeros((3, 3), np.int64), np.zeros((3, 3)), np.zeros(3, np.int8)
    together.find_drivers(
        ["x", "y", "z"], names, rows.reshape(-1), found.reshape(-1), usual.reshape(-1), counts
    )
    for place, series in enumerate("xyz"):
        own = drivers_of(alone, series, dict(zip(names, rows[place].tolist(), strict=True)))
        assert own
        assert [names[one] for one in found[place, : counts[place]].tolist()] == [one.feature for one in own]
        assert usual[place, : counts[place]].tolist() == [one.usual for one in own]


def interpreted_module(name: str) -> dict[str, Any]:
    source = Path(drivers.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    interpreted: dict[str, Any] = {"__file__": f"{name}.py", "__name__": "interpreted"}
    exec(compile(source, f"{name}.py", "exec"), interpreted)
    return interpreted


def test_the_interpreted_modules_find_and_choose_the_same() -> None:
    rng, names = np.random.default_rng(2), ("spread_bps", "return_last", "rv_1s", "bv_1s", "mid", "ofi")
    one, other = FeatureBaseline(), interpreted_module("drivers")["FeatureBaseline"]()
    series = [f"S{place}" for place in range(20)]
    rows = rng.lognormal(size=(len(series), len(names)))
    for _ in range(40):
        rows = rng.lognormal(size=rows.shape)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        one.learn(series, names, rows.reshape(-1))
        other.learn(series, names, rows.reshape(-1))
    assert one.state() == other.state()
    found = [[np.zeros(60, np.int64), np.zeros(60), np.zeros(20, np.int8)] for _ in range(2)]
    for baseline, columns in zip((one, other), found, strict=True):
        baseline.find_drivers(series, names, rows.reshape(-1), *columns)
    assert [[column.tolist() for column in columns] for columns in found[:1]] == [
        [column.tolist() for column in columns] for columns in found[1:]
    ]
    assert set(found[0][2].tolist()) >= {2, 3}


@pytest.mark.parametrize(
    ("case", "opening"),
    [
        ((0.02, nan, 0.0, 1.0, False), "first"), ((0.02, 0.02, nan, 1.0, True), "first"),
        ((0.02, 0.02, 0.0, 9.0, True), "shock"), ((0.02, 0.01, 0.1, -4.0, False), "after_jump"),
        ((0.02, 0.01, 0.0, nan, False), "widening"), ((0.01, 0.02, 0.0, 1.0, False), "narrowing"),
        ((0.02, 0.02, 0.0, 1.0, False), "steady"), ((0.0, 0.0, 0.0, 1.0, False), "widening"),
    ],
)  # fmt: skip
def test_an_opening_is_chosen_by_the_band_before_and_the_last_move(
    case: tuple[Any, ...], opening: str
) -> None:
    assert choice.OPENINGS[choice.choose_opening(*case)] == opening
    assert interpreted_module("choice")["choose_opening"](*case) == choice.choose_opening(*case)

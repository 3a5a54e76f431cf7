"""Drivers are the features furthest from usual; what is usual is learnt bar by bar."""

import json

import pytest

from htfi.narrative.rationale.drivers import FeatureBaseline, find_drivers


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
        usual.learn("SPX/1d", {"a": size})
    assert not usual.magnitudes("SPX/1d")
    usual.learn("SPX/1d", {"a": 6.0})
    assert usual.magnitudes("SPX/1d") == {"a": pytest.approx(3.0)}
    assert not usual.magnitudes("VIX/1d")


def test_usual_follows_a_change_with_its_half_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.narrative.rationale.drivers.USUAL_HALF_LIFE_BARS", 10.0)
    usual = FeatureBaseline()
    for _ in range(500):
        usual.learn("s", {"a": 1.0})
    for _ in range(10):
        usual.learn("s", {"a": 3.0})
    assert usual.magnitudes("s")["a"] == pytest.approx(2.0, abs=1e-9)


def test_restored_usual_goes_on_bit_for_bit() -> None:
    whole, first, second = FeatureBaseline(), FeatureBaseline(), FeatureBaseline()
    rows = [{"a": 0.1 * n, "b": -1.0 / (n + 1)} for n in range(50)]
    for n, row in enumerate(rows):
        whole.learn("s", row)
        if n < 25:
            first.learn("s", row)
    second.restore(json.loads(json.dumps(first.state())))
    for row in rows[25:]:
        second.learn("s", row)
    assert second.state() == whole.state()

"""Suspicion rises with trouble, stands until it cools down or a person clears it, and says why."""

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import SuspicionReset
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.config import SuspicionConfig
from htfi.narrative.sanitising.incidents import ScreeningIncident
from htfi.narrative.suspicion import DIVERGENCE, SuspicionMonitor, divergence_incident

NOW = 1_221_500_000 * 10**9
HOUR = NS_PER_DAY // 24


def trouble(
    rule: str = "pump", symbols: tuple[str, ...] = ("JPM",), source: str = "blog"
) -> ScreeningIncident:
    return ScreeningIncident(source, symbols, rule, NOW)


def test_one_trouble_is_no_suspicion_and_repeated_trouble_is() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble()], NOW)
    assert secure.suspicion("JPM", NOW) == ""
    secure.observe([trouble(), trouble("burst")], NOW + HOUR)
    assert secure.suspicion("JPM", NOW + HOUR) == ""  # the first has faded a little
    secure.observe([trouble()], NOW + HOUR)
    words = secure.suspicion("JPM", NOW + HOUR)
    assert all(part in words for part in ("JPM", "pump 3", "burst 1", "blog"))
    assert secure.suspicion("IBM", NOW + HOUR) == ""
    active = secure.active_suspicions(NOW + HOUR)
    assert sum(words.startswith("source blog suspected") for words in active) == 1
    assert not any(words.startswith("source reuters") for words in active)


def test_grave_trouble_takes_fewer_items() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble("injection.command")] * 2, NOW)
    assert secure.suspicion("JPM", NOW)


def test_it_cools_down_only_without_further_trouble() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble()] * 3, NOW)
    assert secure.suspicion("JPM", NOW + NS_PER_DAY - 1)
    secure.observe([trouble()], NOW + NS_PER_DAY - 1)
    assert secure.suspicion("JPM", NOW + 2 * NS_PER_DAY - 2)
    assert secure.suspicion("JPM", NOW + 2 * NS_PER_DAY - 1) == ""


def test_after_cooling_down_it_takes_as_much_trouble_again() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble()] * 3, NOW)
    later = NOW + 3 * NS_PER_DAY
    secure.observe([trouble()], later)
    assert secure.suspicion("JPM", later) == ""
    secure.observe([trouble()] * 2, later)
    assert "pump 3" in secure.suspicion("JPM", later)  # of this time alone


def test_trouble_on_many_symbols_or_on_none_concerns_all() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble(symbols=())] * 6, NOW)
    assert secure.suspicion("IBM", NOW).startswith("all news")
    wide = SuspicionMonitor()
    wide.observe([trouble(symbols=(f"S{k}",)) for k in range(23)], NOW)
    assert wide.suspicion("IBM", NOW) == ""
    wide.observe([trouble(symbols=("S23",))], NOW)
    assert wide.suspicion("IBM", NOW)


def test_the_false_alarms_of_a_large_stream_do_not_make_all_suspected_and_an_attack_in_it_does() -> None:
    secure = SuspicionMonitor()
    for turn in range(10_000):  # a day, one in a hundred held back by mistake
        held = [trouble(symbols=(f"S{turn % 97}",))] if turn % 100 == 0 else []
        secure.observe(held, NOW + turn * NS_PER_DAY // 10_000)
        assert secure.suspicion("IBM", NOW + turn * NS_PER_DAY // 10_000) == ""
    later = NOW + NS_PER_DAY
    for turn in range(1_200):
        secure.observe([trouble(symbols=(f"S{turn % 97}",))], later + turn)
    assert secure.suspicion("IBM", later + 1_200).startswith("all news")


def test_a_trickle_elsewhere_does_not_keep_all_suspected() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble(symbols=())] * 6, NOW)
    for day in range(4):
        secure.observe([trouble(symbols=("X",))], NOW + day * NS_PER_DAY + HOUR)
    assert secure.suspicion("IBM", NOW + 4 * NS_PER_DAY) == ""


def test_a_person_clears_a_symbol_or_everything() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble("injection")] * 6, NOW)
    ended = secure.reset(SuspicionReset(NOW, NOW, "people", 1, "Ada", "looked at them", "JPM"))
    (told,) = ended
    assert "JPM" in told
    assert secure.suspicion("JPM", NOW) == ""
    assert any(words.startswith("source blog suspected") for words in secure.active_suspicions(NOW))
    assert len(secure.reset(SuspicionReset(NOW, NOW, "people", 2, "Ada", "all known"))) == 1
    assert secure.active_suspicions(NOW) == []


def test_memory_is_bounded_and_a_flood_of_names_turns_it_on_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.narrative.suspicion.MAX_SCOPES", 16)
    secure = SuspicionMonitor()
    secure.observe([trouble()] * 3, NOW)
    secure.observe([trouble(symbols=(f"S{k}",), source=f"site{k}") for k in range(1_000)], NOW)
    assert len(secure.state()["levels"]) == 16
    assert secure.suspicion("JPM", NOW).startswith("all news")


def test_hostile_names_are_told_cleaned_and_cut() -> None:
    secure = SuspicionMonitor()
    secure.observe([trouble(source="evil\x1b[31m\n\u202e" + "x" * 500)] * 3, NOW)
    words = secure.suspicion("JPM", NOW)
    assert words.isprintable()
    assert len(words) < 200


def test_divergence_is_trouble_only_where_it_is_rare_and_little_trusted_items_drive_it() -> None:
    low, high = ("blog", 0.2, 0.6), ("reuters", 1.0, 0.4)
    found = divergence_incident("JPM", NOW, 0.995, [low, high])
    assert found == ScreeningIncident("blog", ("JPM",), DIVERGENCE, NOW)
    assert divergence_incident("JPM", NOW, 0.95, [low, high]) is None
    assert divergence_incident("JPM", NOW, 0.995, [("blog", 0.2, 0.3), high]) is None
    assert divergence_incident("JPM", NOW, 0.995, []) is None


@pytest.mark.parametrize(
    "values",
    [{"symbol_threshold": 0}, {"symbol_threshold": 9_000}, {"cool_down_ns": 0}, {"max_view_weight": 1.5}],
)
def test_settings_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        SuspicionConfig(**values)  # type: ignore[arg-type]

"""Who is new among those who are known: nobody at the beginning, later all who have not been heard for days."""

import json

from htfi.domain.time import NS_PER_DAY
from htfi.narrative.sanitising.sources import NewcomerRegister

NOW = 15_000 * NS_PER_DAY


def begun(*voices: str) -> NewcomerRegister:
    """After ten days of these voices."""
    found = NewcomerRegister(64)
    for day in range(10):
        for voice in voices:
            assert found.judge(voice, NOW + day * NS_PER_DAY) is None
    return found


def test_at_the_beginning_nobody_is_new() -> None:
    found = begun("wire", "blog")
    assert found.judge("wire", NOW + 10 * NS_PER_DAY) is None
    assert found.judge("blog", NOW + 10 * NS_PER_DAY) is None


def test_a_voice_that_is_first_heard_later_is_new() -> None:
    found = begun("wire")
    told = found.judge("tips", NOW + 10 * NS_PER_DAY)
    assert told is not None
    assert told.rule == "newcomer"
    assert found.judge("wire", NOW + 10 * NS_PER_DAY) is None


def test_a_slow_feed_of_the_beginning_stays_known() -> None:
    found = NewcomerRegister(64)
    found.judge("weekly", NOW)
    for day in range(10):
        found.judge("wire", NOW + day * NS_PER_DAY)
    assert found.judge("weekly", NOW + 20 * NS_PER_DAY) is None


def test_a_flood_within_a_day_does_not_make_it_known_and_days_of_speaking_do() -> None:
    found = begun("wire")
    later = NOW + 10 * NS_PER_DAY
    assert all(found.judge("tips", later + turn) is not None for turn in range(200))
    assert found.judge("tips", later + 6 * NS_PER_DAY) is not None
    assert found.judge("tips", later + 8 * NS_PER_DAY) is None


def test_a_single_item_long_ago_is_no_record() -> None:
    found = begun("wire")
    found.judge("sleeper", NOW + 10 * NS_PER_DAY)
    assert found.judge("sleeper", NOW + 40 * NS_PER_DAY) is not None


def test_a_flood_of_names_displaces_nobody_who_is_known() -> None:
    found = begun("wire")
    for turn in range(1_000):
        assert found.judge(f"n{turn}", NOW + 11 * NS_PER_DAY) is not None
    assert found.judge("wire", NOW + 12 * NS_PER_DAY) is None
    assert len(found.state()["new"]) == 64


def test_it_goes_the_way_of_a_snapshot() -> None:
    found = begun("wire")
    found.judge("tips", NOW + 10 * NS_PER_DAY)
    again = NewcomerRegister(64)
    again.restore(json.loads(json.dumps(found.state())))
    for day in range(11, 20):
        for voice in ("wire", "tips", "else"):
            assert again.judge(voice, NOW + day * NS_PER_DAY) == found.judge(voice, NOW + day * NS_PER_DAY)
    assert again.state() == found.state()

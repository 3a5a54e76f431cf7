"""Calendars as people write them: TOML and CSV, hours with their zones, and one clear line for whatever is wrong."""

from datetime import UTC, datetime

import pytest

from checks import nonempty
from htfi.domain.errors import InvalidInput
from htfi.domain.time import to_ns
from htfi.narrative.calendar.announcements import (
    Announcement,
    AnnouncementKind,
    change_bp,
    likely_outcomes,
    outcome_keys,
    rate_key,
    surprise_key,
)
from htfi.narrative.calendar.parsing import parse_calendar
from htfi.narrative.config import PrefetchingConfig
from htfi.wiring.calendar import open_calendar

FOMC = '[[release]]\nid = "a"\nkind = "rate_decision"\nsubject = "fed"\n'


def parsed(rest: str) -> Announcement:
    (release,) = parse_calendar((FOMC + rest).encode(), "c.toml").releases
    return release


def utc_ns(*parts: int) -> int:
    return to_ns(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "zone", "utc"),
    [
        ('"2026-01-28 14:00"', "America/New_York", (2026, 1, 28, 19)),
        ('"2026-07-29 14:00"', "America/New_York", (2026, 7, 29, 18)),
        ("2026-07-29 14:00:00", "America/New_York", (2026, 7, 29, 18)),  # TOML's own local time
        ("2026-07-29T14:00:00-04:00", "", (2026, 7, 29, 18)),
        ("2026-07-29T18:00:00Z", "Asia/Tokyo", (2026, 7, 29, 18)),  # an offset counts, not the zone
        ('"2026-03-26 12:00"', "Europe/London", (2026, 3, 26, 12)),
        ('"2026-06-18 12:00"', "Europe/London", (2026, 6, 18, 11)),
        ('"2026-06-18 12:00"', "Asia/Tokyo", (2026, 6, 18, 3)),
        (
            '"2007-03-13 14:15"',
            "America/New_York",
            (2007, 3, 13, 18, 15),
        ),  # two days into the new rule's summer
    ],
)
def test_hours_are_those_of_their_zone_in_summer_and_winter(at: str, zone: str, utc: tuple[int, ...]) -> None:
    release = parsed(f"at = {at}\n" + (f'zone = "{zone}"\n' if zone else ""))
    assert release.at_ns == utc_ns(*utc)


def test_toml_and_csv_say_the_same() -> None:
    toml = b"""
[defaults]
zone = "America/New_York"
[[release]]
id = "fomc-2026-01-28"
kind = "rate_decision"
subject = "fed"
at = 2026-01-28 14:00:00
level = 3.75
odds = { hold = 0.7, "cut 25" = 0.3 }
[[release]]
id = "aapl-q1"
kind = "earnings"
subject = "Apple"
at = 2026-01-29 16:30:00
symbols = ["AAPL"]
publishers = ["Apple", "Reuters"]
consensus = 2.35
"""
    csv = (
        b"id,kind,subject,at,zone,level,odds,symbols,publishers,consensus\r\n"
        b"aapl-q1,earnings,Apple,2026-01-29 16:30,America/New_York,,,AAPL,Apple; Reuters,2.35\r\n"
        b"\r\n"
        b"fomc-2026-01-28,rate_decision,fed,2026-01-28 14:00,America/New_York,3.75,hold: 0.7; cut 25: 0.3,,,\r\n"
    )
    ours, theirs = parse_calendar(toml, "c.toml"), parse_calendar(csv, "C.CSV")
    assert ours.releases == theirs.releases
    assert ours.digest != theirs.digest
    assert [release.id for release in ours.releases] == ["fomc-2026-01-28", "aapl-q1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('at = "2026-03-08 02:30"\nzone = "America/New_York"', "does not exist there: clocks go forward"),
        ('at = "2026-11-01 01:30"\nzone = "America/New_York"', "comes twice there: clocks go back"),
        ('at = "2026-01-28 14:00"', "has no zone"),
        ('at = "2026-01-28"\nzone = "UTC"', "a date without a time"),
        ('at = 2026-01-28\nzone = "UTC"', "a date without a time"),
        ('at = "soon"\nzone = "UTC"', "is not a time"),
        ('at = "1926-01-28 14:00"\nzone = "UTC"', "outside 1970"),
        ('at = "9999-12-31T23:59:59-12:00"', "outside 1970"),
        ('zone = "UTC"', "at is missing"),
        ('at = 14:00:00\nzone = "UTC"', "at is missing or not a time"),
        ('at = "2026-01-28 14:00"\nzone = "Mars/Olympus"', "zone 'Mars/Olympus' is not known"),
        ('at = "2026-01-28 14:00"\nzone = "../../etc/passwd"', "is not known"),
        ("at = 2026-01-28T14:00:00Z\nhour = 3", "unknown key 'hour'"),
        ("at = 2026-01-28T14:00:00Z\nlevel = true", "is not a number"),
        ("at = 2026-01-28T14:00:00Z\nlevel = nan", "is not a number"),
        ("at = 2026-01-28T14:00:00Z\nlevel = inf", "is not a number"),
        ("at = 2026-01-28T14:00:00Z\nsymbols = [3]", "must be a list of texts"),
        ('at = 2026-01-28T14:00:00Z\nodds = { jump = 1 }', "'jump' is not an outcome of rate_decision"),
        ('at = 2026-01-28T14:00:00Z\nodds = { hold = -1 }', "must be at least 0"),
        ('at = 2026-01-28T14:00:00Z\nodds = { hold = 0 }', "at least one must be above 0"),
        ('at = 2026-01-28T14:00:00Z\nodds = "hold"', "is not an outcome"),
        ("at = 2026-01-28T14:00:00Z\nbasis = 'weekly'", "basis 'weekly' is not known"),
        ("at = 2026-01-28T14:00:00Z\n" + FOMC + "at = 2026-01-28T14:00:00Z", "id 'a' is used twice"),
    ],
)  # fmt: skip
def test_a_bad_entry_is_told_in_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parsed(text)
    told = str(error.value)
    assert said in told
    assert "c.toml" in told
    assert "release " in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"\xff\xfe", "c.toml", "not UTF-8"),
        (b"release = 3", "c.toml", "must be a table"),
        (b"defaults = 3", "c.toml", "must be a table"),
        (b"[[event]]", "c.toml", "unknown 'event'"),
        (b"[[release", "c.toml", "not valid TOML"),
        (b"release = " + b"[" * 5000, "c.toml", "not valid TOML"),
        (b"", "c.csv", "its first line names the columns"),
        (b"id,kind\nx", "c.csv", "2 cells are needed"),
        (b"id,kind\nx,y,z", "c.csv", "2 cells are needed"),
        (b'id,kind\n"x,y', "c.csv", "not valid CSV"),
        (b"id,kind\nx,holiday", "c.csv", "kind 'holiday' is not known"),
        (b"id,kind,subject\nx,cpi,atlantis", "c.csv", "subject 'atlantis' is not known"),
        (b"id,kind,subject\nx,earnings,Apple", "c.csv", "symbols are missing"),
        (b"id,kind,subject,at\n,cpi,us,2026-01-28T14:00:00Z", "c.csv", "id is missing"),
        (b"x" * (9 << 20), "c.toml", "the maximum is 8388608"),
        (b"[[release]]\n" * 20_001, "c.toml", "the maximum is 20000"),
    ],
)
def test_a_bad_file_is_told_in_one_line(data: bytes, name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as error:
        parse_calendar(data, name)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_a_file_that_is_missing_or_a_folder_is_told(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for named in (str(tmp_path / "none.toml"), str(tmp_path), "a\0b"):
        with pytest.raises(InvalidInput, match="calendar"):
            open_calendar(named)
    assert open_calendar("").releases == ()


def test_the_samples_calendar_holds_the_meetings_that_were_planned() -> None:
    found = open_calendar("sample").releases
    assert len(found) == 24
    assert {release.kind for release in found} == {AnnouncementKind.RATE}
    assert not any("2008-01-22" in release.id or "2008-10-08" in release.id for release in found)
    assert found[0].at_ns == utc_ns(2007, 1, 31, 19, 15)
    assert found[1].at_ns == utc_ns(2007, 3, 21, 18, 15)


def test_outcomes_come_likeliest_first_and_sum_to_one() -> None:
    for kind in AnnouncementKind:
        found = likely_outcomes(
            Announcement("a", kind, 0, "us" if kind is not AnnouncementKind.RATE else "fed")
        )
        assert {outcome.key for outcome in found} == set(outcome_keys(kind))
        assert sum(outcome.probability for outcome in found) == pytest.approx(1.0)
        shares = [outcome.probability for outcome in found]
        assert shares == sorted(shares, reverse=True)
        assert len({outcome.headline for outcome in found}) == len(found)


def test_odds_of_the_calendar_stand_and_no_rate_falls_far_below_zero() -> None:
    release = Announcement("a", AnnouncementKind.RATE, 0, "fed", odds=(("hold", 1.0), ("cut 100", 3.0)))
    assert [outcome.key for outcome in likely_outcomes(release)] == ["cut 100", "hold"]
    assert [outcome.key for outcome in likely_outcomes(release, level=-0.75)] == ["hold"]
    assert likely_outcomes(release, level=5.25)[0].headline == "Fed cuts its target rate by 100 bp to 4.25%"


def test_every_headline_of_ours_is_told_as_the_outcome_that_it_is_written_for() -> None:
    from htfi.domain.events import News
    from htfi.narrative.calendar.prefetching import item_outcome

    for kind in AnnouncementKind:
        subjects = {AnnouncementKind.RATE: ("fed", "ecb", "boj"), AnnouncementKind.EARNINGS: ("Acme",)}
        for subject in nonempty(subjects.get(kind, ("us", "uk"))):
            for level in (None, 3.5):
                release = Announcement(
                    "a", kind, 0, subject, ("ACME",) if kind is AnnouncementKind.EARNINGS else ()
                )
                for outcome in nonempty(likely_outcomes(release, level)):
                    item = News(0, 0, "wire", 1, "n", outcome.headline)
                    assert item_outcome(item, release, level).key == outcome.key, outcome.headline


def test_steps_and_surprises_have_one_name() -> None:
    assert [change_bp(rate_key(bp)) for bp in (-75, 0, 25)] == [-75, 0, 25]
    assert surprise_key(AnnouncementKind.CPI, 0.3, 0.3) == "in line"
    assert surprise_key(AnnouncementKind.CPI, 0.5, 0.3) == "far above"
    assert surprise_key(AnnouncementKind.PAYROLLS, 120.0, 180.0) == "below"


@pytest.mark.parametrize("bad", [{"lead_s": 0.0}, {"window_s": 1e6}, {"lead_s": 1.0}, {"budget_ms": -1.0}])
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="prefetching"):
        PrefetchingConfig(**bad)
    assert PrefetchingConfig().max_readings == 25

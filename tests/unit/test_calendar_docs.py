"""docs/calendar.md: its examples are calendars, its tables name what there is, its settings are the defaults."""

import re
from pathlib import Path

from htfi.narrative.calendar.announcements import CENTRAL_BANKS, REGIONS, AnnouncementKind, outcome_keys
from htfi.narrative.calendar.parsing import parse_calendar
from htfi.narrative.config import EARLY_S, READING_MS, PrefetchingConfig
from htfi.pipeline.prepared_views import MAX_READINGS_PER_STEP

TEXT = (Path(__file__).parents[2] / "docs" / "calendar.md").read_text(encoding="utf-8")


def example(language: str, having: str) -> bytes:
    blocks = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return next(block for block in blocks if having in block).encode()


def test_the_examples_are_calendars() -> None:
    found = parse_calendar(example("toml", "[[release]]"), "c.toml").releases
    assert [release.kind for release in found] == [
        AnnouncementKind.RATE,
        AnnouncementKind.EARNINGS,
        AnnouncementKind.CPI,
    ]
    assert found[0].odds == (("hold", 0.8), ("cut 25", 0.2))
    (row,) = parse_calendar(example("csv", "fomc"), "c.csv").releases
    assert (row.id, row.at_ns, row.odds) == (found[0].id, found[0].at_ns, found[0].odds)
    assert row.level == 3.75


def test_every_kind_outcome_bank_and_region_is_named() -> None:
    for kind in AnnouncementKind:
        line = next(line for line in TEXT.splitlines() if line.startswith("|") and f"`{kind}`" in line)
        told = set(re.findall(r"`([\w ]+)`", line))
        parts = {
            part
            for key in outcome_keys(kind)
            for part in (key.split(", ") if kind is AnnouncementKind.EARNINGS else [key])
        }
        assert parts <= told, kind
    banks = re.search(r"Banks known by key: ([\w, ]+)\.", TEXT)
    regions = re.search(r"Regions: ([\w, ]+)\.", TEXT)
    assert banks is not None
    assert regions is not None
    assert banks[1].split(", ") == list(CENTRAL_BANKS)
    assert regions[1].split(", ") == list(REGIONS)


def test_the_settings_told_are_the_defaults() -> None:
    config = PrefetchingConfig()
    for name in ("lead_s", "window_s", "budget_ms"):
        told = re.search(rf"`prefetching\.{name}`(?: before its time)? ?(?:\w+ )*\(([\d,]+)", TEXT)
        assert told is not None, name
        assert float(told[1].replace(",", "")) == getattr(config, name), name
    assert "from one second before the time" in TEXT
    assert EARLY_S == 1.0
    assert f"at {READING_MS:g} ms each" in TEXT
    assert "four at a time" in TEXT
    assert MAX_READINGS_PER_STEP == 4

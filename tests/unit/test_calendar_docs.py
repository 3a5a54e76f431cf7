"""docs/calendar.md: its examples are calendars, its tables name what there is, its settings are the defaults."""

import re
from pathlib import Path

from htfi.adapters.calendars.files import MAX_BYTES
from htfi.calendar.columns import FIELDS
from htfi.calendar.document import COUNTRIES, FIRST_DAY, LAST_DAY, RecurringChoice, parse_document
from htfi.calendar.expressions import parse_expression
from htfi.calendar.reading import MAX_ROWS
from htfi.calendar.recurring import recurring_rules
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


def test_the_example_of_sources_is_one() -> None:
    document = parse_document(example("toml", "[[source]]"), Path("c.toml"))
    (source,) = document.sources
    assert (source.path, source.zone, source.only) == ("releases.parquet", "America/New_York", ("USD", "EUR"))
    assert parse_expression(source.columns["forecast"]).columns == ("actual", "surprise")
    assert document.recurring == RecurringChoice(("us", "uk"), ("XNYS", "XLON"))


def test_every_field_rule_and_bound_is_named() -> None:
    table = TEXT[TEXT.index("| field | names |") : TEXT.index("Anything else goes into a TOML file")]
    assert {*re.findall(r"`(\w+)`", table)} >= {*FIELDS} - {"clock"}
    rules = TEXT[TEXT.index("## Releases by rule") :]
    kinds = {
        kind
        for rule in recurring_rules().release
        for kind in (rule.kind, *(one[0] for one in rule.companions))
    }
    told = {
        *re.findall(
            r"`(\w+)`",
            rules.replace("`_construction`", "`uk_pmi_construction`").replace(
                "`_services`", "`uk_pmi_services`"
            ),
        )
    }
    assert kinds <= told
    assert f"{MAX_BYTES >> 20} MiB and {MAX_ROWS:,} rows" in TEXT
    assert f"for {FIRST_DAY.year} to {LAST_DAY.year}" in TEXT
    assert f"releases by rule: {', '.join(COUNTRIES)}" in TEXT


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

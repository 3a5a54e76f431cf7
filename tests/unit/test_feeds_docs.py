"""docs/feeds.md lists every reason and every key of a mapping, and no other reason."""

import re
from dataclasses import fields
from pathlib import Path

from htfi.pipeline.intake.quarantine_reasons import QuarantineReason
from htfi.pipeline.intake.spec import PAGE_KEYS, SourceSpec
from htfi.wiring.feeds import resolve

TEXT = (Path(__file__).parents[2] / "docs" / "feeds.md").read_text(encoding="utf-8")


def test_every_reason_is_explained_and_no_other() -> None:
    table = TEXT.split("## Reasons")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [reason.value for reason in QuarantineReason]


def test_the_example_of_web_sources_is_a_mapping(tmp_path: Path) -> None:
    example = TEXT.split("## Web sources\n```toml\n")[1].split("```")[0]
    (tmp_path / "m.toml").write_text(example, encoding="utf-8")
    (tmp_path / "company_tickers.json").write_text(
        '{"0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple"}}'
    )
    specs = resolve([], tmp_path / "m.toml")
    assert [spec.format for spec in specs] == ["rss", "edgar", "edgar", "page"]


def test_every_key_of_a_mapping_is_explained() -> None:
    table = TEXT.split("## A mapping")[1].split("## When")[0]
    named = set(re.findall(r"`(?:\[source\.)?(\w+)\]?`", table))
    assert {field.name for field in fields(SourceSpec)} <= named
    assert all(f"`{key}`" in TEXT.split("## Web sources")[1] for key in PAGE_KEYS)

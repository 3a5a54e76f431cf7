"""docs/feeds.md lists every reason and every key of a mapping, and no other reason."""

import re
from dataclasses import fields
from pathlib import Path

from htfi.pipeline.intake.reasons import Reason
from htfi.pipeline.intake.spec import SourceSpec

TEXT = (Path(__file__).parents[2] / "docs" / "feeds.md").read_text(encoding="utf-8")


def test_every_reason_is_explained_and_no_other() -> None:
    table = TEXT.split("## Reasons")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [reason.value for reason in Reason]


def test_every_key_of_a_mapping_is_explained() -> None:
    table = TEXT.split("## A mapping")[1].split("## When")[0]
    named = set(re.findall(r"`(?:\[source\.)?(\w+)\]?`", table))
    assert {field.name for field in fields(SourceSpec)} <= named

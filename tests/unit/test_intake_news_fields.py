"""Publisher, corrections and retractions of news are read from rows of any file."""

from typing import Any

import pytest

from htfi.domain.events import News
from htfi.pipeline.intake.reorder import row_identity
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

ROW = {"ts": "2024-05-13T10:00:00Z", "id": "a", "headline": "Rates rise"}


def read(row: dict[str, Any], arrival_ns: int | None = None, **settings: str) -> News:
    item = RowParser(SourceSpec(name="s", **settings), "").parse(ROW | row, 1, "", arrival_ns)
    assert isinstance(item, News), item
    return item


def test_the_row_names_its_publisher_before_the_mapping_does() -> None:
    assert read({}).publisher == ""
    assert read({}, publisher="The Wire").publisher == "The Wire"
    assert read({"outlet": "The Paper"}, publisher="The Wire").publisher == "The Paper"


@pytest.mark.parametrize("said", [True, "true", "TRUE", "1", 1, "yes"])
def test_a_retraction_says_yes_and_names_its_item(said: object) -> None:
    item = read({"corrects": "b", "retracts": said})
    assert (item.corrects, item.retracts) == ("b", True)


@pytest.mark.parametrize("said", [False, "false", "", None, 0, "no", [], "b"])
def test_anything_else_retracts_nothing(said: object) -> None:
    assert read({"corrects": "b", "retracts": said}).retracts is False


def test_a_retraction_of_nothing_is_none() -> None:
    assert read({"retracts": True}).retracts is False


def test_a_correction_under_the_id_of_its_item_is_no_duplicate_of_it() -> None:
    plain, corrected, back = read({}), read({"corrects": "a"}), read({"corrects": "a", "retracts": True})
    assert len({row_identity(item, b"") for item in (plain, corrected, back)}) == 3


def test_a_live_item_dated_by_day_did_not_happen_after_it_came() -> None:
    arrival_ns = 1_715_594_400_000_000_000  # that day at 10:00 UTC
    item = read({"ts": "2024-05-13"}, arrival_ns, url="https://feeds.example/a")
    assert item.event_time_ns == item.available_at_ns == arrival_ns

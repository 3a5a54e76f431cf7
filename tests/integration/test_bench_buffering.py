"""`htfi bench buffering`: its figures follow from what was served, and its texts are judged by what was decided."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi_eval.bench.buffering import metrics, texts_rows
from htfi_eval.bench.fed_decisions import (
    AnnouncementTiming,
    items_around_decisions,
    latest_fed_decisions,
    right_words,
)


def test_both_runs_are_given_the_same_items_in_order() -> None:
    told = latest_fed_decisions(3)
    items = items_around_decisions(told, 7)
    assert items == items_around_decisions(told, 7)
    assert items != items_around_decisions(told, 8)
    times = [item.available_at_ns for item in items]
    assert times == sorted(times)
    assert [item.id for item in items if isinstance(item, News)][1:] == [one.item.id for one in told]


def test_what_was_decided_is_the_samples_rate() -> None:
    told = {one.id: one.key for one in latest_fed_decisions(None)}
    assert len(told) == 23
    assert told["fomc-2007-09-18"] == "cut 50"
    assert told["fomc-2008-10-29"] == "cut 50"  # from 1.50, cut between meetings
    assert told["fomc-2008-12-16"] == "cut 75"
    assert sum(key == "hold" for key in told.values()) == 15


def test_shares_count_releases_and_times_are_paired() -> None:
    told = latest_fed_decisions(3)
    right = [right_words(one) for one in told]
    plain = [
        AnnouncementTiming(view_ms=100.0),
        AnnouncementTiming(view_ms=80.0),
        AnnouncementTiming(view_ms=90.0),
    ]
    served = [
        AnnouncementTiming(
            view_ms=10.0, served=[right[0]] * 2, num_amended=2, num_confirmed=1, num_same=1, num_ahead=6
        ),
        AnnouncementTiming(
            view_ms=20.0, served=[right[1], "fomc-2009-11-04, a cut of 75 bp"], num_amended=2, num_confirmed=2
        ),
        AnnouncementTiming(view_ms=95.0),
    ]
    figures = metrics(told, plain, served)
    assert figures["hits"] == pytest.approx(2 / 3)
    assert figures["wrong_matches"] == pytest.approx(1 / 3)
    assert figures["confirmed"] == 0.75
    assert figures["confirmed_to_the_figure"] == 0.25
    assert figures["saved_ms"] == 75.0
    assert figures["readings_ahead"] == 2.0


def test_a_folder_without_texts_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--data"):
        texts_rows(tmp_path)


@pytest.mark.slow
def test_the_command_tells_hits_and_what_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    done = CliRunner().invoke(cli, ["bench", "buffering", "--quick", "--json", str(tmp_path / "b.json")])
    assert done.exit_code == 0, done.output
    assert "hits = 1" in done.output
    assert "wrong_matches = 0" in done.output
    assert (tmp_path / "b.json").stat().st_size > 0

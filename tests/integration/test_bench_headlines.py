"""`htfi bench headlines` times a real live run: every headline is answered, by the reader that is timed."""

import math

import pytest

from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.settings import Settings
from htfi_eval.bench import headlines
from htfi_eval.bench.headlines import ReleaseTimes, headlines_that_matter, run_both


@pytest.mark.slow
def test_each_headline_is_answered_and_timed_with_facts_and_with_the_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(headlines, "NUM_SYMBOLS", 4)
    monkeypatch.setattr(headlines, "NUM_WARM", 1)
    found = run_both(2, seed=3)
    assert set(found) == {"facts", "target"}
    for times in found.values():
        assert (len(times.answered_ms), times.num_otherwise, times.num_unanswered) == (2, 0, 0)
        assert 0.0 < times.percentile(50) <= times.percentile(99)


def test_headlines_are_told_apart_and_each_matters() -> None:
    texts = headlines_that_matter(Settings(), 20, seed=1)
    assert len(set(texts)) == 20
    assert texts[:5] == headlines_that_matter(Settings(), 5, seed=1)


def test_without_an_answer_there_is_no_time() -> None:
    assert math.isnan(ReleaseTimes([], 0, 3).percentile(50))


def test_a_run_that_does_not_begin_stops_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlines, "_SETTINGS", "[triggers]\nnonsense = 1\n")
    with pytest.raises(DependencyUnavailable, match="did not begin"):
        run_both(1, seed=3)

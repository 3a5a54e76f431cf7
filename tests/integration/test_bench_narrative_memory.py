"""`htfi bench narrative` watches a real run's memory."""

import pytest

from htfi_eval.bench.news import profile_run
from htfi_eval.bench.news_timing import load_news_texts

pytestmark = pytest.mark.slow


def test_a_run_is_watched_to_its_end_and_stays_within_its_bound() -> None:
    watched = profile_run(load_news_texts(None, 3_000, 1), 3_000, 1)
    assert [one.num_events // 1_000 for one in watched.samples] == [1, 3]
    assert 100.0 < watched.samples[0].resident_mb <= watched.peak_mb < 600.0
    assert watched.ahead_peak_mb < 400.0
    assert watched.samples[0].resident_mb < watched.together_peak_mb
    assert watched.together_peak_mb <= watched.peak_mb + watched.ahead_peak_mb

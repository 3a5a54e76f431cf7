"""`htfi bench narrative` watches a real run's memory."""

import pytest

from htfi.apps.bench.narrative_items import texts
from htfi.apps.bench.narrative_memory import watch_run

pytestmark = pytest.mark.slow


def test_a_run_is_watched_to_its_end_and_stays_within_its_bound() -> None:
    watched = watch_run(texts(None, 3_000, 1), 3_000, 1)
    assert [one.num_events // 1_000 for one in watched.taken] == [1, 3]
    assert 100.0 < watched.taken[0].resident_mb <= watched.peak_mb < 600.0

"""A candidate is slower than its champion only where it is so twice: a busy machine rejects nobody."""

from pathlib import Path

import pytest

from htfi.governance.sandbox.verdict import SandboxCheck
from htfi.pipeline.sandbox.messages import SeriesAnswer
from htfi.wiring.sandbox import examination
from htfi.wiring.sandbox.candidates import open_candidate
from htfi.wiring.sandbox.history import TrialHistory, read_history
from htfi.wiring.sandbox.running import TrialSide


@pytest.fixture(scope="module")
def history() -> TrialHistory:
    return read_history()


@pytest.mark.parametrize(("slow_runs", "is_slower"), [(1, False), (2, True)])
def test_candidate_is_timed_again_before_it_is_called_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: TrialHistory, slow_runs: int, is_slower: bool
):
    place = tmp_path / "s.toml"
    place.write_text("[forecasting]\newma_decay = 0.9\n")
    num_runs: dict[tuple[bool, int], int] = {}
    streams: list[object] = []

    def run(contender, stream, bounds, advance, **_: object) -> TrialSide:
        is_candidate = bool(contender.tables)
        streams.append(stream)  # so that no other gets its id
        key = (is_candidate, id(stream))
        num_runs[key] = num_runs.get(key, 0) + 1
        slow = is_candidate and num_runs[key] <= slow_runs
        answers = [[SeriesAnswer(name, [], [], "", 0.0) for name in one.series] for one in stream.instants]
        return TrialSide(answers, [0.3 if slow else 0.01 for _ in stream.instants])

    monkeypatch.setattr(examination, "run_side", run)
    found = examination.examine(open_candidate(place), history, seed=3, num_bars=100)
    failed = {one.check for one in found.verdict.failed}
    assert (SandboxCheck.SPEED in failed) is is_slower
    assert max(num_runs.values()) == 2

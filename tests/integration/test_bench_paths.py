"""`htfi bench paths`: every way draws the same paths, and its metrics are those of the cases that they name."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("onnxruntime")

from htfi import models
from htfi.decoding.vocabulary import Vocabulary
from htfi_eval.bench import paths
from htfi_eval.bench.decode.methods import open_pair
from htfi_eval.bench.paths import SHIPPED, PathsCase, PathsWorkload
from htfi_eval.bench.paths_worker import (
    FEWEST_PASSES,
    LEAST_TIME,
    PLAIN,
    PathSetTiming,
    PathsRequest,
    draw,
    open_path_method,
)
from htfi_eval.bench.targets import COST_60M


def test_ways_draw_the_same_paths_in_fewer_passes() -> None:
    pair = open_pair(models.TARGET, models.DRAFT)
    vocabulary = Vocabulary(pair.target.tokenizer)
    drawn = {
        way: draw(open_path_method(pair, way), vocabulary, PathsRequest(way, 5, 12, 3, 1))
        for way in (PLAIN, FEWEST_PASSES, LEAST_TIME)
    }
    assert len({one.bins for one in drawn.values()}) == 1
    assert drawn[PLAIN].num_passes == 11  # the first tokens come of the prefix
    assert drawn[FEWEST_PASSES].num_passes < drawn[PLAIN].num_passes
    other = draw(open_path_method(pair, PLAIN), vocabulary, PathsRequest(PLAIN, 5, 12, 4, 1))
    assert other.bins != drawn[PLAIN].bins


def test_metrics_take_the_worst_prefix_and_the_worst_target() -> None:
    ways = (PLAIN, FEWEST_PASSES, LEAST_TIME)

    def runs(passes: tuple[int, ...], plain_ms: float, planned_ms: float) -> list[dict[str, PathSetTiming]]:
        return [
            {
                PLAIN: PathSetTiming(plain_ms, 1.0, 23, 0, 1.0, 0.0, "a"),
                FEWEST_PASSES: PathSetTiming(5.0, 1.0, num, 3, 1.0, 1.0, "a"),
                LEAST_TIME: PathSetTiming(planned_ms, 1.0, 9, 3, 1.0, 1.0, "b" if num == 7 else "a"),
            }
            for num in passes
        ]

    measured = {
        PathsCase(SHIPPED, 100, 24, ways): runs((5, 7, 4), 10.0, 8.0),
        PathsCase(COST_60M.label, 100, 24, (PLAIN, LEAST_TIME)): runs((5, 5, 5), 9.0, 10.0),
        PathsCase(COST_60M.label, 16, 24, ways): runs((5, 5, 5), 30.0, 10.0),
    }
    passes = {PathsCase(SHIPPED, 100, 24): [[4, 9, 5], [6, 6, 2]]}
    assert paths.metrics(measured, passes) == {
        "target_passes_h24": 6,
        "wall_vs_plain_n16": 3.0,
        "wall_vs_plain_n100": 0.9,
    }
    assert paths.num_unlike(measured[PathsCase(SHIPPED, 100, 24, ways)]) == 1


@pytest.mark.slow
def test_bench_reports_each_case_on_both_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (PathsCase(SHIPPED, 3, 6), PathsCase(COST_60M.label, 2, 4, (PLAIN, LEAST_TIME)))
    monkeypatch.setattr(paths, "QUICK", PathsWorkload(cases, num_runs=1, num_warm=0))
    done = CliRunner().invoke(paths.command, ["--quick", "--json", str(tmp_path / "paths.json")])
    assert done.exit_code == 0, done.output
    body = json.loads((tmp_path / "paths.json").read_text())
    rows = {row["what"]: row for row in body["rows"]}
    assert rows["shipped · 3 × 6 · plain"]["passes"] == 5
    assert rows["shipped · 3 × 6 · fewest passes"]["× plain"] > 0
    assert (
        rows["60M-cost · 2 × 4 · least time"]["ms"] > rows["60M-cost · 2 × 4 · least time"]["prefix, ms"] > 0
    )
    assert "sets of paths that differ from plain sampling: 0 of 5" in body["notes"]

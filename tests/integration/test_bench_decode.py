"""`htfi bench decode`: a heavier target writes what the shipped one writes, prompts are unseen, figures are sound."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from checks import nonempty

pytest.importorskip("onnxruntime")

from htfi import models
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi_eval.bench.decode import command as decode
from htfi_eval.bench.decode import measurements
from htfi_eval.bench.decode import prompts as decode_prompts
from htfi_eval.bench.decode.command import explain
from htfi_eval.bench.decode.measurements import (
    ALL,
    ON_DISTRIBUTION,
    DecodeRuns,
    acceptance_by_depth,
    charts,
    speedup,
    table_row,
    tokens_per_s,
    worst_speedup,
)
from htfi_eval.bench.decode.methods import (
    CHAIN,
    CHAIN_OF_8,
    METHODS,
    PLAIN,
    DecodeMeasurement,
    ModelPair,
    open_pair,
)
from htfi_eval.bench.decode.prompts import OFF_DISTRIBUTION, prompt_kinds, request
from htfi_eval.bench.processes import WorkerProcess
from htfi_eval.bench.targets import COST_60M, TargetSize, write_heavy_target
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED

DEEPER = TargetSize("deeper", 7, 768)


@pytest.fixture(scope="module")
def pair() -> Iterator[ModelPair]:
    opened = open_pair(models.TARGET, models.DRAFT)
    with opened.closing:
        yield opened


@pytest.mark.parametrize(
    "cost",
    [pytest.param(cost, marks=pytest.mark.slow) for cost in (DEEPER, COST_60M)],
    ids=lambda cost: cost.label,
)
def test_heavier_target_writes_the_tokens_of_the_shipped_one(
    tmp_path: Path, pair: ModelPair, cost: TargetSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_parameters = write_heavy_target(models.TARGET, tmp_path / cost.label, cost)
    of = ModelFolder.open(tmp_path / cost.label).architecture
    assert (of.num_layers, of.intermediate_size) == (cost.num_layers, cost.intermediate_size)
    assert of.hidden_size == 1024
    if cost is COST_60M:
        assert 55e6 < num_parameters < 65e6
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    heavy = open_pair(tmp_path / cost.label, models.DRAFT)
    ways = [METHODS[PLAIN](one) for one in (pair, heavy)]
    vocabulary = Vocabulary(pair.target.tokenizer)
    for kind in prompt_kinds():
        light, slow = (way.measure(request(kind, 5, vocabulary)) for way in ways)
        assert light.tokens == slow.tokens, kind.name


def test_heavier_target_is_refused_where_the_source_is_larger_already(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="already larger than small"):
        write_heavy_target(models.TARGET, tmp_path, replace(COST_60M, label="small", num_layers=4))


def test_every_way_writes_the_same_tokens_and_its_times_add_up(pair: ModelPair) -> None:
    vocabulary = Vocabulary(pair.target.tokenizer)
    ways = {name: build(pair) for name, build in METHODS.items()}
    for kind in nonempty(prompt_kinds()[1::2]):
        asked = request(kind, 11, vocabulary)
        told = {name: way.measure(asked) for name, way in ways.items()}
        plain = told[PLAIN]
        for name, measured in told.items():
            assert measured.tokens == plain.tokens, (kind.name, name)
            assert measured.num_passes <= plain.num_passes
            assert measured.read_ms > 0.0
            assert 0.0 < measured.verify_ms + measured.draft_ms <= measured.write_ms
        assert plain.offered == []
        assert told[CHAIN_OF_8].num_passes < plain.num_passes


def test_no_prompt_is_one_that_training_may_have_seen_and_none_is_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert decode_prompts.SEED >= FIRST_EVALUATION_SEED
    asked: dict[str, list[int]] = {}

    class Listening:
        def ask(self, put: dict[str, Any]) -> dict[str, Any]:
            asked.setdefault(put["way"], []).append(put["number"])
            return vars_of(_measured(10.0, 15))

    runs = measurements.measure(Listening(), "x", (PLAIN, CHAIN), prompt_kinds(), 3, lambda _: None)  # type: ignore[arg-type]
    assert asked[PLAIN]
    assert sorted(asked[PLAIN]) == sorted(asked[CHAIN])
    assert len(set(asked[CHAIN])) == len(asked[CHAIN])
    assert {len(of) for of in runs.answers.values()} == {3}
    # two answers of 15 rounds warm a kind
    assert len(asked[PLAIN]) == 2 * len(prompt_kinds()) + 3 * sum(
        kind.num_requests_per_run for kind in prompt_kinds()
    )


def test_ratios_are_of_paired_runs_and_the_worst_kind_is_found() -> None:
    runs = DecodeRuns("x")
    for plain_ms, chain_ms in ((10.0, 5.0), (40.0, 10.0), (30.0, 10.0)):
        runs.add("easy", PLAIN, [_measured(plain_ms, 9)])
        runs.add("easy", CHAIN, [_measured(chain_ms, 3)])
        runs.add("hard", PLAIN, [_measured(10.0, 9)])
        runs.add("hard", CHAIN, [_measured(12.5, 9)])
    assert speedup(runs, "easy", CHAIN, PLAIN) == 3.0
    assert worst_speedup(runs, CHAIN) == (0.8, "hard")
    assert speedup(runs, ALL, CHAIN, PLAIN) == pytest.approx(40 / 22.5)
    assert speedup(runs, "easy", CHAIN, PLAIN, whole=True) == pytest.approx(34 / 14)
    runs.add(OFF_DISTRIBUTION, PLAIN, [_measured(1.0, 9)])
    assert len(runs.of(ON_DISTRIBUTION, PLAIN)[0]) == 2
    del runs.answers[OFF_DISTRIBUTION, PLAIN]
    assert tokens_per_s(runs.of("easy", PLAIN)[0]) == 1e3
    assert table_row(runs, "easy", CHAIN)["tokens/pass"] == pytest.approx(10 / 3)
    assert runs.num_unlike() == 0
    runs.add("hard", PLAIN, [_measured(10.0, 9)])
    runs.add("hard", CHAIN, [replace(_measured(10.0, 9), tokens="other")])
    assert runs.num_unlike() == 1


def test_survival_counts_rounds_that_drafted_so_deep() -> None:
    runs = DecodeRuns("x")
    runs.add("a", CHAIN, [replace(_measured(1.0, 2), offered=[4, 2], stood=[3, 1])])
    runs.add("a", CHAIN, [replace(_measured(1.0, 2), offered=[4], stood=[1])])
    assert acceptance_by_depth(runs, "a", CHAIN) == [0.5, 0.5]
    for _ in range(2):
        runs.add("a", PLAIN, [_measured(1.0, 2)])
    assert list(charts([runs], CHAIN, CHAIN)[2].curves[0].values) == [0.5, 0.5]


def test_explained_rounds_are_the_answers_own(pair: ModelPair) -> None:
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    for line in explain(pair):
        console.print(line, highlight=False)
    told = console.export_text()
    assert "DIFFERENT TOKENS" not in told
    assert told.count("same tokens in") >= 2
    assert "✓" in told
    assert "✗" in told
    assert "→" in told


def test_worker_that_ends_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(
        DependencyUnavailable, match=r"the process of htfi_eval.bench.decode.worker ours ended: "
    ):
        WorkerProcess("htfi_eval.bench.decode.worker", ("ours",), tmp_path)


@pytest.mark.slow
def test_bench_reports_every_way_and_a_line_for_each_absent_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "QUICK", decode.DecodeWorkload(1, 1, 0, costs=()))
    monkeypatch.setattr(decode, "prompt_kinds", lambda: prompt_kinds()[1:2])
    page, figures = tmp_path / "decode.html", tmp_path / "decode.json"
    done = CliRunner().invoke(decode.command, ["--quick", "--html", str(page), "--json", str(figures)])
    assert done.exit_code == 0, done.output
    body = json.loads(figures.read_text())
    assert set(body["metrics"]) >= {"spec_vs_plain_mini", "worst_class_vs_plain"}
    assert all(value > 0 for value in body["metrics"].values())
    rows = {row["what"]: row for row in body["rows"]}
    for way in METHODS:
        assert rows[f"shipped · {way}"]["tokens/s"] > 0
    assert any(note.startswith("llama-cpp-python: ") for note in body["notes"])
    assert any(
        note.startswith("shipped: 0 of ") and "differ from plain decoding" in note for note in body["notes"]
    )
    assert rows["shipped · tree · view, T 1"]["× plain"] > 0
    assert {"accepted %", "draft/wait/verify", "mJ/token", "× plain"} <= set(rows["shipped · chain of 8"])
    assert 0 <= rows["shipped · outcomes of 4"]["hits %"] <= 100
    assert page.read_text().count("<figure") == 3
    assert "@@" not in page.read_text()


@pytest.mark.slow
def test_whole_bench_reports_heavier_targets_and_the_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setattr(decode, "QUICK", decode.DecodeWorkload(1, 1, 1, costs=(DEEPER,)))
    figures = tmp_path / "decode.json"
    done = CliRunner().invoke(decode.command, ["--quick", "--json", str(figures)])
    assert done.exit_code == 0, done.output
    body = json.loads(figures.read_text())
    assert body["metrics"]["spec_vs_hf_assisted"] > 0
    rows = {row["what"]: row for row in body["rows"]}
    assert rows["deeper · chain · view, T 1"]["× plain"] > 0
    assert rows["free, T 1 · … assisted fp32"]["request"] > 0


def vars_of(measured: DecodeMeasurement) -> dict[str, Any]:
    return {name: getattr(measured, name) for name in DecodeMeasurement.__dataclass_fields__}


def _measured(write_ms: float, num_passes: int, tokens: Sequence[int] = (1,)) -> DecodeMeasurement:
    return DecodeMeasurement(10, 4.0, write_ms, 1.0, 2.0, 0.0, num_passes, [], [], 0, 0, False, str(tokens))

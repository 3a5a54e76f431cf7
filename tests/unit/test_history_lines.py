"""History of benchmarks: which figures are compared, what counts as worse, what a damaged line does."""

import ast
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from checks import nonempty
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi_eval import commands, history_file
from htfi_eval.bench.paths import FULL
from htfi_eval.better import BETTER, Better, unlisted_metrics
from htfi_eval.history import (
    NUM_USUAL,
    HistoryLine,
    MetricChange,
    change_rows,
    comparable,
    compare,
    encode_line,
    finite_metrics,
    is_regression,
    parse_history,
    share_worse,
)
from htfi_eval.history_file import record_result
from htfi_eval.main import BENCHMARKS
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

BENCH_FOLDER = Path(history_file.__file__).parent / "bench"
START = datetime(2026, 1, 1, tzinfo=UTC)


def line(day: int = 0, *, machine: str = "A, 2 cores", **changed: object) -> HistoryLine:
    values = {"commit": f"c{day}", "bench": "ledger", "seed": 7, "metrics": {"verify_100k_s": 1.0}}
    return HistoryLine(date=START + timedelta(days=day), machine=machine, **(values | changed))


def verify_lines(*figures: float) -> list[HistoryLine]:
    return [line(day, metrics={"verify_100k_s": figure}) for day, figure in enumerate(figures)]


def change(name: str, now: float, *earlier: float) -> MetricChange:
    of_now = line(99, metrics={name: now})
    return compare(of_now, [line(day, metrics={name: figure}) for day, figure in enumerate(earlier)])[0]


def test_a_line_reads_back_as_it_was_written() -> None:
    written = line(3, workload="staged week, runs 2")
    assert parse_history(encode_line(written)) == ([written], [])


def test_a_figure_is_beside_the_newest_earlier_one_and_their_ratio() -> None:
    (found,) = compare(line(9, metrics={"verify_100k_s": 18.0}), verify_lines(8.0, 12.0, 9.0))
    assert (found.before, found.ratio, found.usual) == (9.0, 2.0, 9.0)
    (row,) = change_rows([found])
    assert (row["now"], row["before"], row["now ÷ before"], row["at commit"]) == (18.0, 9.0, 2.0, "c2")


def test_newest_is_by_date_whatever_the_order_in_the_file() -> None:
    late, early = line(5, commit="late"), line(1, commit="early")
    assert [one.commit for one in comparable(line(9), [late, early])] == ["early", "late"]


@pytest.mark.parametrize(
    "other",
    [
        line(machine="B, 2 cores"),
        line(machine="A, 4 cores"),
        line(bench="ticks"),
        line(seed=8),
        line(workload="num_entries 1000"),
    ],
)
def test_lines_of_other_machines_benchmarks_seeds_and_workloads_are_not_compared(other: HistoryLine) -> None:
    same = line(1)
    assert comparable(line(9), [other, same]) == [same]


def test_a_metric_without_earlier_figures_stands_alone() -> None:
    (found,) = compare(line(9, metrics={"appends_per_s": 3.0}), verify_lines(1.0))
    assert found == MetricChange("appends_per_s", 3.0)
    assert found.ratio is None
    assert not is_regression("ledger", found)


def test_usual_is_the_median_of_the_last_lines_alone() -> None:
    (found,) = compare(line(99), verify_lines(900.0, 900.0, *[10.0] * (NUM_USUAL - 1), 30.0))
    assert found.usual == 10.0
    assert found.before == 30.0


@pytest.mark.parametrize(
    ("bench", "metric", "now", "is_worse"),
    [
        ("ledger", "verify_100k_s", 115.0, False),
        ("ledger", "verify_100k_s", 115.1, True),
        ("ledger", "verify_100k_s", 50.0, False),
        ("ledger", "appends_per_s", 85.0, False),
        ("ledger", "appends_per_s", 84.9, True),
        ("ledger", "appends_per_s", 500.0, False),
        ("ledger", "no_such_metric", 500.0, False),
    ],
)
def test_worse_is_more_for_a_cost_and_less_for_a_rate(
    bench: str, metric: str, now: float, is_worse: bool
) -> None:
    assert is_regression(bench, change(metric, now, 100.0)) is is_worse


def test_one_slow_run_before_hides_no_growth_and_one_fast_run_makes_none() -> None:
    assert is_regression("ledger", change("verify_100k_s", 18.0, 8.0, 8.1, 7.9, 8.0, 40.0))
    assert not is_regression("ledger", change("verify_100k_s", 8.5, 8.0, 8.1, 7.9, 8.0, 4.0))


def test_anything_above_a_usual_zero_is_worse() -> None:
    lost = change("lost_requests", 1.0, 0.0, 0.0)
    assert is_regression("link", lost)
    assert lost.ratio is None
    assert not is_regression("link", change("lost_requests", 0.0, 0.0))


def test_share_worse_of_negative_figures_keeps_its_sign() -> None:
    assert share_worse(Better.LOWER, -1.0, -2.0) == 0.5
    assert share_worse(Better.HIGHER, -1.0, -2.0) == -0.5


def test_values_that_json_lacks_are_left_out() -> None:
    assert finite_metrics({"a": 1, "b": None, "c": float("nan"), "d": float("inf")}) == {"a": 1.0}


GOOD = encode_line(line())


@pytest.mark.parametrize(
    "damaged",
    [
        b"<<<<<<< HEAD",
        b'{"date":"2026-01-01T00:00:00Z"}',
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        GOOD[: len(GOOD) // 2],
        GOOD.strip().replace(b"1.0}", b"NaN}"),
        GOOD.strip().replace(b"1.0}", b'"fast"}'),
        GOOD.strip().replace(b"Z", b""),  # a date without its zone
    ],
)
def test_a_damaged_line_is_named_and_the_others_are_read(damaged: bytes) -> None:
    lines, bad = parse_history(GOOD + b"\n" + damaged + b"\n" + GOOD)
    assert lines == [line(), line()]
    assert [one.number for one in bad] == [3]
    assert bad[0].reason


def test_table_of_better_sides_has_a_row_for_each_benchmark() -> None:
    assert set(BETTER) == set(BENCHMARKS)
    assert {f"target_passes_h{case.horizon}" for case in FULL.cases} <= set(BETTER["paths"])


def test_better_sides_name_no_metric_that_no_benchmark_reports() -> None:
    texts = [
        "".join(re.escape(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in node.values)
        if isinstance(node, ast.JoinedStr)
        else re.escape(node.value)
        for file in nonempty(sorted(BENCH_FOLDER.rglob("*.py")))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
    written = re.compile("|".join(f"(?:{text})" for text in texts if "_" in text.replace(r"\w+", "")))
    listed = [metric for by_metric in BETTER.values() for metric in by_metric]
    assert len(listed) > 40
    assert [metric for metric in listed if not written.fullmatch(metric) and metric not in texts] == []


def test_metrics_that_a_benchmark_collects_by_name_are_listed() -> None:
    """Keys of what is called metrics or figures, or returned by a function called so; `write_outputs` sees the rest."""
    named = {
        key.value
        for file in nonempty(sorted(BENCH_FOLDER.rglob("*.py")))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for table in _tables_of_metrics(node)
        for key in table.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    assert {"verify_100k_s", "run_cost_ratio", "item_to_view_ms", "event_p50_us"} <= named
    assert named - {metric for by_metric in BETTER.values() for metric in by_metric} == set()


def _tables_of_metrics(node: ast.AST) -> list[ast.Dict]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            within = [node.value] if name in ("metrics", "figures") else []
        case ast.AugAssign(target=ast.Name(id="metrics" | "figures")):
            within = [node.value]
        case ast.FunctionDef(name=name) if name.endswith("metrics"):
            within = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
        case _:
            within = []
    return [one for value in within if value for one in ast.walk(value) if isinstance(one, ast.Dict)]


def test_a_benchmark_that_reports_a_metric_whose_better_side_is_not_listed_is_refused() -> None:
    assert unlisted_metrics("ledger", ["verify_100k_s", "quick_s"]) == ["quick_s"]
    with pytest.raises(AssertionError, match="quick_s"):
        write_outputs(Evaluation(name="ledger", kind="bench", metrics={"quick_s": 1.0}), json_file=None)


def test_a_line_without_its_end_keeps_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_bytes(GOOD + b'{"date":')
    record_result(file, Evaluation(name="ledger", kind="bench", metrics={"verify_100k_s": 2.0}))
    lines, bad = parse_history(file.read_bytes())
    assert file.read_bytes().startswith(GOOD + b'{"date":\n')
    assert [one.metrics["verify_100k_s"] for one in lines] == [1.0, 2.0]
    assert [one.number for one in bad] == [2]


def test_many_damaged_lines_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.jsonl"
    file.write_bytes(b"bad\n" * 12)
    record_result(file, Evaluation(name="ledger", kind="bench", metrics={"verify_100k_s": 2.0}))
    told = capsys.readouterr().err.splitlines()
    assert len(told) == history_file.MAX_BAD_LINES + 1
    assert told[0].startswith(f"{file} line 1: left as it is and not compared: ")
    assert told[-1] == f"{file}: 7 further lines cannot be read either"
    assert file.read_bytes().startswith(b"bad\n" * 12)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "history.jsonl"
    file.write_bytes(GOOD)
    write = history_file.os.write
    monkeypatch.setattr(history_file.os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    with pytest.raises(DependencyUnavailable, match="disk is full"):
        record_result(file, Evaluation(name="ledger", kind="bench", metrics={"verify_100k_s": 2.0}))
    assert file.read_bytes() == GOOD


def test_a_history_that_is_no_plain_file_is_one_clear_line(tmp_path: Path) -> None:
    result = Evaluation(name="ledger", kind="bench", metrics={"verify_100k_s": 2.0})
    with pytest.raises(InvalidInput, match="not a plain file"):
        record_result(Path("/dev/null"), result)
    with pytest.raises(DependencyUnavailable, match="cannot be opened"):
        record_result(tmp_path, result)
    (tmp_path / "file").touch()
    with pytest.raises(DependencyUnavailable, match="cannot be opened"):
        record_result(tmp_path / "file" / "history.jsonl", result)


@pytest.mark.parametrize(
    ("words", "workload"),
    [
        ([], "data of the day"),
        (["--runs", "5"], "data of the day"),
        (
            ["--runs", "3", "--trades", "of/t.parquet", "--json", "o.json"],
            "data of the day, trades t.parquet, num_runs 3",
        ),
        (["--quick"], "data of the day, quick True"),
    ],
)
def test_workload_is_the_data_and_the_options_that_differ(
    tmp_path: Path, words: list[str], workload: str
) -> None:
    file = tmp_path / "history.jsonl"

    @click.command()
    @click.option("--trades", type=click.Path(path_type=Path))
    @commands.runs_option(5)
    @commands.quick_option
    @commands.figures_options
    def command(**_: object) -> None:
        record_result(
            file, Evaluation(name="ticks", kind="bench", metrics={"entry_bytes": 1.0}, data="data of the day")
        )

    done = CliRunner().invoke(command, [*words, "--history", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    (found,), _ = parse_history(file.read_bytes())
    assert found.workload == workload


def test_every_benchmark_takes_a_history() -> None:
    from htfi_eval.main import bench

    for name in nonempty(sorted(BENCHMARKS)):
        done = CliRunner().invoke(bench, [name, "--help"], catch_exceptions=False)
        assert "--history FILE" in done.output, name

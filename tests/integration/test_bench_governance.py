"""`htfi bench governance`: a quick run of its parts gives the figures it promises, from lines told apart rightly."""

import io
import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.errors import DependencyUnavailable
from htfi_eval.bench.governance.served_lines import ServedLines
from htfi_eval.bench.governance.stop_times import stop_figures


@pytest.mark.slow
@pytest.mark.parametrize(("part", "place"), [("stops", "local"), ("cluster-stops", "cluster")])
def test_a_quick_run_times_stops_and_trips_of_live_runs(tmp_path: Path, part: str, place: str) -> None:
    file = tmp_path / "governance.json"
    found = CliRunner().invoke(cli, ["bench", "governance", part, "--quick", "--json", str(file)])
    assert found.exit_code == 0, found.output
    metrics = json.loads(file.read_text())["metrics"]
    assert 0.0 <= metrics[f"request_{place}_p50_ms"] <= metrics[f"request_{place}_p99_ms"]
    assert 0.0 < metrics[f"trip_{place}_p50_ms"] <= metrics[f"trip_{place}_p99_ms"]
    worse = max(metrics[f"request_{place}_p99_ms"], metrics[f"trip_{place}_p99_ms"])
    assert metrics[f"stop_{place}_p99_ms"] == worse


def test_a_stop_is_as_slow_as_the_slower_of_request_and_trip() -> None:
    found = stop_figures("Stops", "local", "twenty series", [1.0, 3.0], [2.0, 2.0])
    assert found.metrics == pytest.approx(
        {
            "request_local_p50_ms": 2.0, "request_local_p99_ms": 2.98,
            "trip_local_p50_ms": 2.0, "trip_local_p99_ms": 2.0,
            "stop_local_p50_ms": 2.0, "stop_local_p99_ms": 2.98,
        }
    )  # fmt: skip
    assert [row["num"] for row in found.rows] == [2, 2]


def line(at_ns: int, *, withheld: bool) -> bytes:
    held = b'"withheld":true,' if withheld else b'"decision":{'
    return b'{"index":1,"leaf_hash":"00",%s"id":"S/1d@x","symbol":"S","as_of_ns":%d}\n' % (held, at_ns)


def test_lines_are_told_apart_by_whether_they_are_withheld_and_of_which_instant() -> None:
    lines = ServedLines()
    began_ns = time.monotonic_ns()
    given = [(1, False), (2, True), (2, True), (3, True)]
    lines.follow(io.BytesIO(b"".join(line(at_ns, withheld=held) for at_ns, held in given)))
    assert (len(lines.forecast_ns), lines.withheld_of) == (1, [2, 2, 3])
    assert lines.last_withheld_ns(2) == lines.withheld_ns[1]
    assert lines.last_forecast_ns(began_ns) == lines.forecast_ns[0]
    assert lines.last_forecast_ns(time.monotonic_ns()) > lines.forecast_ns[0]
    with pytest.raises(DependencyUnavailable, match="were not withheld"):
        lines.last_withheld_ns(1)


def test_an_unknown_part_is_refused_in_one_line() -> None:
    found = CliRunner().invoke(cli, ["bench", "governance", "nothing"])
    assert found.exit_code == 1
    assert "there is no part 'nothing': choose from stops, cluster-stops, breakers, bundles" in str(
        found.exception
    )

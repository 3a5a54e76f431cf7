"""A run that could use no row ends with a status and a line that say what to change; repairs are counted apart."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi.apps.cli.main import cli
from htfi.domain.time import NS_PER_DAY, format_ns

T0_NS = 1_167_696_000_000_000_000


def prices(path: Path, *, extra: str = "", stamp: str = "Z", spoil: bool = False) -> str:
    rows = [f"ts,symbol,open,high,low,close{',res' if extra else ''}"]
    for n in range(60):
        close = 100.0 * math.exp(0.01 * math.sin(n))
        opened, high = (close * 1.02, close * 1.01) if spoil and n == 40 else (close, close * 1.01)
        ts = format_ns(T0_NS + n * NS_PER_DAY).replace("Z", stamp)
        rows.append(f"{ts},A,{opened!r},{high!r},{close * 0.99!r},{close!r}{extra and ',' + extra}")
    path.write_text("\n".join(rows), encoding="utf-8")
    return str(path)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def run(folder: Path, *files: str) -> Result:
    return invoke("run", *files, "--out", str(folder / "out"), "--plain", "--no-report")


@pytest.mark.parametrize(
    ("keys", "setting"),
    [({"extra": "hour-ish"}, "state `interval`"), ({"stamp": ""}, "state `zone`")],
)
def test_a_run_without_a_usable_row_says_what_to_change(
    tmp_path: Path, keys: dict[str, str], setting: str
) -> None:
    file = prices(tmp_path / "p.csv", **keys)
    for result in (run(tmp_path, file), invoke("forecast", file)):
        assert result.exception is not None
        assert not isinstance(result.exception, SystemExit)
        line = str(result.exception)
        assert "every row of" in line
        assert "(60) was quarantined" in line
        assert setting in line
        assert "\n" not in line


def test_one_refused_source_of_two_is_told_in_the_summary(tmp_path: Path) -> None:
    good, bad = prices(tmp_path / "good.csv"), prices(tmp_path / "bad.csv", stamp="")
    result = run(tmp_path, good, bad)
    assert result.exit_code == 0
    assert "every row of bad (60) was quarantined, no_zone" in result.output
    assert "every row of good" not in result.output


def test_a_repaired_bar_is_used_and_counted_apart(tmp_path: Path) -> None:
    file = prices(tmp_path / "p.csv", spoil=True)
    result = invoke("run", file, "--out", str(tmp_path / "out"), "--plain")
    assert result.exit_code == 0
    assert "0 quarantined  1 repaired" in result.output
    assert "quarantine  0 rows" in result.output
    assert "repaired    1 bar was repaired and used" in result.output
    (line,) = (tmp_path / "out" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
    note = json.loads(line)
    assert (note["row"], note["reason"], [one["field"] for one in note["repairs"]]) == (
        41,
        "repaired",
        ["high"],
    )
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<b>1</b><span>rows repaired</span>" in page
    assert "<b>0</b><span>rows set aside</span>" in page
    decisions = [json.loads(line) for line in (tmp_path / "out" / "decisions.jsonl").read_text().splitlines()]
    assert {line["decision"]["circumstances"]["missing_share"] for line in decisions} == {0.0}
    told = json.loads(invoke("forecast", file, "--json").output)
    assert (told["repaired"], told["quarantine"], told["events"]) == (1, {}, 60)

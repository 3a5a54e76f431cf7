"""`htfi audit fairness` by command: tables of client decisions, forecasts by groups of symbols, faults in one line."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from test_trade_command import say, write_prices

from htfi.apps.cli.main import cli
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.wiring.fairness.forecasts import waiting_times

STAGED = Path(__file__).parents[3] / "shared" / "data" / "fairness"


def audit(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["audit", "fairness", *map(str, words)])


def table(folder: Path, text: str) -> Path:
    file = folder / "clients.csv"
    file.write_text(text)
    return file


def clients(num: int = 200, gap: float = 0.3) -> str:
    rng = np.random.default_rng(3)
    lines = ["approve,repaid,score,sex,age,one,none"]
    for place in range(num):
        sex = "fm"[place % 2]
        good = rng.random() < 0.7
        approve = rng.random() < (0.8 if sex == "m" else 0.8 - gap)
        lines.append(f"{int(approve)},{int(good)},{0.6 + 0.1 * good:.2f},{sex},{20 + place % 50},x,")
    return "\n".join(lines) + "\n"


def test_unequal_decisions_are_found_with_their_interval(tmp_path: Path) -> None:
    file = table(tmp_path, clients())
    result = audit(
        file, "--decision", "approve", "--outcome", "repaid", "--score", "score", "--protected", "sex",
        "--json", tmp_path / "a.json", "--html", tmp_path / "a.html",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "a.json").read_text())
    gaps = {one["measure"]: one for one in found["audit"]["gaps"]}
    assert set(gaps) == {
        "selection rate", "base rate", "true positive rate", "false positive rate", "outcome less score"
    }  # fmt: skip
    assert gaps["selection rate"]["verdict"] == "different"
    assert gaps["selection rate"]["low"] < gaps["selection rate"]["gap"] < gaps["selection rate"]["high"] < 0
    assert gaps["base rate"]["verdict"] != "different"
    assert found["proxies"][0]["adjusted_p"] < 0.05
    page = (tmp_path / "a.html").read_text()
    assert "selection rate by sex" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--decision", "approve", "--protected", "one"), "column 'one' has 1 group(s)"),
        (("--decision", "approve", "--protected", "none"), "column 'none' is empty"),
        (("--decision", "approve"), "no protected attribute is named"),
        (("--decision", "nothing", "--protected", "sex"), "there is no column 'nothing'"),
        (("--decision", "age", "--protected", "sex"), "column 'age' is not binary: it holds 50 values"),
        (("--decision", "one", "--protected", "sex"), "say which value is favourable"),
        (("--decision", "approve=7", "--protected", "sex"), "never holds 7"),
        (("--score", "age", "--outcome", "repaid", "--protected", "sex"), "a score must be the chance"),
        (("--score", "sex", "--outcome", "repaid", "--protected", "sex"), "is not a column of numbers"),
        (("--score", "score", "--protected", "sex"), "neither decision nor outcome is named"),
    ],
)
def test_each_fault_of_a_table_is_one_line(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    file = table(tmp_path, clients())
    result = audit(file, *words)
    assert isinstance(result.exception, HtfiError)
    assert message in str(result.exception)
    assert str(file) in str(result.exception)
    assert "\n" not in str(result.exception)


def test_all_equal_outcomes_are_one_line(tmp_path: Path) -> None:
    rows = "".join(f"1,{'ab'[place % 2]}\n" for place in range(40))
    result = audit(table(tmp_path, f"paid,group\n{rows}"), "--outcome", "paid", "--protected", "group")
    assert isinstance(result.exception, InvalidInput)
    assert "every outcome is favourable" in str(result.exception)


def test_rows_without_a_value_are_set_aside_and_unreported_groups_are_listed_only(tmp_path: Path) -> None:
    rows = "".join(f"{place % 2},{('a', 'b', '')[place % 3]}\n" for place in range(90)) + ",a\n,b\n"
    file = table(tmp_path, f"paid,group\n{rows}")
    result = audit(file, "--outcome", "paid", "--protected", "group", "--json", tmp_path / "a.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["num_set_aside"] == 2
    assert {one["group"] for one in found["audit"]["figures"]} == {"a", "b", "(not reported)"}
    assert [(one["first"], one["second"]) for one in found["audit"]["gaps"]] == [("a", "b")]


def decisions(folder: Path, num: int = 120) -> Path:
    """decisions.parquet of four symbols, of which those of one sector have bands that are too narrow."""
    rng = np.random.default_rng(5)
    rows: list[dict[str, object]] = []
    for symbol, width in (("AA", 1.645), ("BB", 1.645), ("CC", 0.6), ("DD", 0.6)):
        price = 100.0
        for day in range(num):
            at = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day)
            rows.append(
                {
                    "id": f"{symbol}/1d@{day}", "symbol": symbol, "interval": "1d", "as_of": at, "last_price": price,
                    "rung": "template", "h1_q05": -0.01 * width, "h1_q50": 0.0, "h1_q95": 0.01 * width,
                }
            )  # fmt: skip
            price *= float(np.exp(0.01 * rng.standard_normal()))
    file = folder / "decisions.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file


def test_forecasts_are_compared_by_groups_of_symbols(tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("symbol,sector,size\nAA,tech,large\nBB,tech,small\nCC,energy,large\nDD,energy,small\n")
    result = audit(
        decisions(tmp_path), "--groups", groups, "--json", tmp_path / "a.json", "--html", tmp_path / "a.html"
    )
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "a.json").read_text())
    coverage = {one["attribute"]: one for one in found["audit"]["gaps"] if one["measure"] == "90% coverage"}
    assert coverage["sector"]["verdict"] == "different"
    assert coverage["sector"]["gap"] < -0.3
    assert coverage["size"]["verdict"] != "different"
    assert "90% coverage by sector" in (tmp_path / "a.html").read_text()


def of_tenants(folder: Path) -> Path:
    """One table of two tenants, who get forecasts on the same symbols, those of beta too narrow."""
    rows: list[dict[str, object]] = []
    for tenant, width in (("alpha", 1.645), ("beta", 0.6), ("", 1.0)):
        for row in pq.read_table(decisions(folder)).to_pylist():
            kept = row | {"tenant": tenant, "h1_q05": -0.01 * width, "h1_q95": 0.01 * width}
            rows.append(kept)
    file = folder / "together.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file


def test_forecasts_are_compared_by_the_tenants_of_a_table(tmp_path: Path) -> None:
    result = audit(of_tenants(tmp_path), "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    (gap,) = [one for one in found["audit"]["gaps"] if one["measure"] == "90% coverage"]
    assert (gap["attribute"], gap["first"], gap["second"], gap["verdict"]) == (
        "tenant",
        "alpha",
        "beta",
        "different",
    )
    assert gap["gap"] > 0.3
    nums = {one["group"]: one["num"] for one in found["audit"]["figures"] if one["measure"] == "90% coverage"}
    assert nums == {"alpha": 4 * 119, "beta": 4 * 119, "(not reported)": 4 * 119}
    assert {one["attribute"] for one in found["proxies"]} == {"tenant"}


def test_a_table_of_symbols_says_more_than_the_record(tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("symbol,tenant\nAA,x\nBB,x\nCC,y\nDD,y\n")
    result = audit(of_tenants(tmp_path), "--groups", groups, "--json", "-")
    gaps = json.loads(result.output)["audit"]["gaps"]
    assert {(one["first"], one["second"]) for one in gaps} == {("x", "y")}


def test_runs_are_compared_by_the_tenants_of_their_records(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    write_prices(prices, 90)
    runs: list[Path] = []
    for tenant in ("alpha", "beta"):
        settings = tmp_path / f"{tenant}.toml"
        settings.write_text(f'[record]\ntenant = "{tenant}"\n')
        runs.append(tmp_path / f"run-{tenant}")
        say(
            "run",
            prices,
            "--settings",
            settings,
            "--out",
            runs[-1],
            "--plain",
            "--no-report",
            "--outputs",
            "none",
        )
    result = audit(*runs, "--protected", "tenant", "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    (gap,) = [one for one in found["audit"]["gaps"] if one["measure"] == "90% coverage"]
    assert (gap["first"], gap["second"], gap["gap"], gap["verdict"]) == ("alpha", "beta", 0.0, "alike")
    assert found["num_symbols"] == 2
    alone = audit(runs[0], "--protected", "tenant")
    assert "or the runs of several tenants" in str(alone.exception)


def test_client_decisions_are_of_one_table(tmp_path: Path) -> None:
    file = table(tmp_path, clients())
    result = audit(file, file, "--decision", "approve", "--protected", "sex")
    assert result.exit_code == 2
    assert "are of one table" in result.output


def test_readings_wait_from_the_beginning_of_their_instant() -> None:
    first, second, other, none = waiting_times([("a", 250.0), ("a", 170.0), ("b", 100.0), ("", np.nan)])
    assert (first, second, other) == (0.0, 80.0, 0.0)
    assert np.isnan(none)


def test_client_decisions_without_a_named_column_say_what_to_name(tmp_path: Path) -> None:
    file = table(tmp_path, clients())
    result = audit(file, "--protected", "sex")
    assert isinstance(result.exception, InvalidInput)
    assert str(file) in str(result.exception)
    assert "name --decision, --outcome or --score" in str(result.exception)


def test_forecasts_without_two_groups_say_what_to_give(tmp_path: Path) -> None:
    result = audit(decisions(tmp_path))
    assert isinstance(result.exception, InvalidInput)
    assert "give --groups FILE" in str(result.exception)


@pytest.mark.skipif(not STAGED.is_dir(), reason="the staged sets are not here")
def test_the_boston_survey_shows_its_known_gap() -> None:
    file = STAGED / "hmda_boston_1990.parquet"
    result = audit(file, "--decision", "deny=no", "--protected", "afam", "--json", "-")
    assert result.exit_code == 0, result.output
    (gap,) = json.loads(result.output)["audit"]["gaps"]
    assert gap["gap"] == pytest.approx(0.191, abs=0.001)
    assert gap["verdict"] == "different"

"""The embedded sample is what docs/sample.md says: digests, prices in order, instants in New York time."""

import hashlib
import json
import re
import tomllib
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from htfi.sample import FILES, MAPPING, paths

ROOT = Path(__file__).parents[2]
NEW_YORK = ZoneInfo("America/New_York")
FOLDER = MAPPING.parent


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def test_sample_is_small_and_complete() -> None:
    assert paths() == FILES
    assert sum(file.stat().st_size for file in FILES) <= 1_500_000
    others = {"__init__.py", "sources.toml", "calendar.toml", "__pycache__"}
    assert {file.name for file in FOLDER.iterdir()} - others == {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_digest_is_the_documented_one(file: Path) -> None:
    text = (ROOT / "docs" / "sample.md").read_text(encoding="utf-8")
    assert hashlib.sha256(file.read_bytes()).hexdigest() in text


def test_mapping_names_each_file_once() -> None:
    sources = tomllib.loads(MAPPING.read_text(encoding="utf-8"))["source"]
    assert [source["path"] for source in sources] == [file.name for file in FILES]
    assert len({source["name"] for source in sources}) == len(sources)


@pytest.mark.parametrize("name", ["spx_daily.parquet", "vix_daily.parquet"])
def test_daily_prices_ascend_in_date_and_cover_the_crisis(name: str) -> None:
    table = pq.read_table(FOLDER / name)
    days: list[date] = table["date"].to_pylist()
    assert all(before < after for before, after in pairwise(days))
    assert (days[0], days[-1], len(days)) == (date(2006, 1, 3), date(2009, 12, 31), 1007)
    assert pc.min(table["low"]).as_py() > 0


def test_known_closes_stand_as_published() -> None:
    spx = pq.read_table(FOLDER / "spx_daily.parquet")
    close = dict(zip(spx["date"].to_pylist(), spx["close"].to_pylist(), strict=True))
    assert close[date(2007, 10, 9)] == 1565.15  # the highest close before the crisis
    assert close[date(2009, 3, 9)] == 676.53  # the lowest of it
    vix = pq.read_table(FOLDER / "vix_daily.parquet")
    assert pc.max(vix["close"]).as_py() == 80.86  # 2008-11-20


def test_ticks_are_one_morning_of_one_sided_quotes_in_order() -> None:
    quotes = pq.read_table(FOLDER / "ibm_quotes.parquet")
    assert set(quotes["side"].unique().to_pylist()) == {"a", "b"}
    assert len(quotes["exchange"].unique()) > 5
    for name in ("ibm_trades.parquet", "ibm_quotes.parquet"):
        moments = pq.read_table(FOLDER / name)["ts"].cast("int64").to_numpy()
        assert (moments[1:] >= moments[:-1]).all()
        first, last = (datetime.fromtimestamp(ms / 1000, NEW_YORK) for ms in (moments[0], moments[-1]))
        assert first.date() == last.date() == date(2013, 10, 10)
        assert (first.hour, first.minute) >= (9, 30)
        assert last.hour < 12


def test_files_from_others_carry_their_licence() -> None:
    for file in FILES:
        if file.suffix == ".parquet":
            notes = pq.read_schema(file).metadata
            assert notes[b"origin"]
            assert notes[b"licence"]
    assert b"Kevin Sheppard" in pq.read_schema(FOLDER / "spx_daily.parquet").metadata[b"licence"]


@pytest.mark.parametrize("name", ["headlines.jsonl", "policy_rate.jsonl"])
def test_instants_carry_new_yorks_offset_of_that_day_and_ascend(name: str) -> None:
    moments = [datetime.fromisoformat(row["published_at"]) for row in lines(name)]
    assert all(before < after for before, after in pairwise(moments))
    for moment in moments:
        assert moment.utcoffset() == moment.astimezone(NEW_YORK).utcoffset()


def test_headlines_have_unique_ids_and_fit_a_line() -> None:
    rows = lines("headlines.jsonl")
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(0 < len(row["headline"]) <= 120 for row in rows)
    assert all(re.fullmatch(r"(fomc|fed|crisis)(-minutes)?-\d{4}-\d\d-\d\d", row["id"]) for row in rows)


def test_each_decision_on_the_rate_has_its_headline_and_the_same_figure() -> None:
    by_time = {row["published_at"]: row for row in lines("headlines.jsonl") if row["id"].startswith("fomc")}
    rates = lines("policy_rate.jsonl")
    for row in rates:
        told = by_time.pop(row["published_at"])["headline"]
        if "target" in told:
            assert f"{row['value']:.2f}%" in told
    assert list(by_time) == ["2013-10-09T14:00:00-04:00"]  # minutes, not a decision
    values = [row["value"] for row in rates]
    steps = [round(after - before, 2) for before, after in pairwise(values) if after != before]
    assert steps == [-0.5, -0.25, -0.25, -0.75, -0.5, -0.75, -0.25, -0.5, -0.5, -0.75]


def test_headlines_agree_with_the_committees_own_statements() -> None:
    archive = ROOT.parent / "shared" / "data" / "central_bank" / "fomc_communications_1994_2024.parquet"
    if not archive.exists():
        pytest.skip("the archive of statements is not at hand")
    told = {row["published_at"][:10] for row in lines("headlines.jsonl")}
    table = pq.read_table(archive, columns=["release_date", "type"]).to_pylist()
    released = {
        row["release_date"].isoformat()
        for row in table
        if row["type"] == "statement" and 2007 <= row["release_date"].year <= 2009
    }
    # The archive dates the statement of 28 June 2007 ten days too early.
    assert released - told == {"2007-06-18"}

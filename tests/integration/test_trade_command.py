"""`htfi trade` and `htfi orders`, as people type them."""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.content_marking import FIELD, content_marking
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.orders import DecisionNoted, MassCancelRequest, NewOrder, TradingDisabled
from htfi.governance.regulation.findings import RuleRegime, Severity
from htfi.governance.regulation.monitor import Span
from htfi.pipeline.trading import Trader
from htfi.wiring.order_record import order_events
from htfi.wiring.regulation import check_regulation

MadeOnce = Any


def say(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def write_prices(path: Path, num_days: int = 90) -> None:
    rng, level = random.Random(5), {"AAA": 100.0, "BBB": 50.0}
    with path.open("w") as rows:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(num_days):
            at = time.strftime("%Y-%m-%dT21:00:00Z", time.gmtime(1_262_304_000 + 86_400 * day))
            for symbol, last in level.items():
                close = last * (1 + rng.gauss(0.001, 0.01))
                rows.write(f"{at},{symbol},{last:.4f},{max(last, close) * 1.01:.4f},{min(last, close) * 0.99:.4f},"
                           f"{close:.4f},{10**6}\n")  # fmt: skip
                level[symbol] = close


@pytest.fixture(scope="module")
def traded(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_prices(folder / "prices.csv")
        say("trade", folder / "prices.csv", "--out", folder / "run", "--plain")

    return made_once("traded", make) / "run"


def test_orders_positions_and_the_page_tell_one_story(traded: Path) -> None:
    orders = [
        json.loads(line) for line in say("orders", "list", traded, "--num", 9_999, "--json").splitlines()
    ]
    positions = [json.loads(line) for line in say("orders", "positions", traded, "--json").splitlines()]
    assert len(orders) > 20
    for position in positions:
        mine = [one for one in orders if one["instrument"] == position["instrument"]]
        held = sum((1 if one["side"] == "buy" else -1) * one["filled"] for one in mine)
        assert held == position["lots"]
        assert sum(one["fees"] for one in mine) == pytest.approx(position["fees"])
    assert {one["instrument"] for one in positions} == {"AAA", "BBB"}
    page = (traded / "report.html").read_text()
    assert "<h2>Orders</h2>" in page
    assert f"<b>{len(orders):,}</b><span>orders</span>" in page
    shown = say("orders", "show", traded, orders[0]["order"])
    assert "acts on" in shown
    assert "OrderAcknowledged" in shown or "OrderRejected" in shown


def test_costs_add_up_to_what_positions_say(traded: Path, tmp_path: Path) -> None:
    page = tmp_path / "costs.html"
    told = json.loads(say("orders", "costs", traded, "--by", "instrument", "--json", "--html", page))
    positions = [json.loads(line) for line in say("orders", "positions", traded, "--json").splitlines()]
    slippage = told["all"]["slippage_bps"] / 1e4 * told["all"]["value"] / 1e9
    assert slippage == pytest.approx(sum(one["shortfall"] for one in positions))
    assert [one["name"] for one in told["groups"]] == ["AAA", "BBB"]
    assert told["venues"] == [
        {"venue": "XSIM", "share of value": "100.0%", "share of orders": "100.0%"}
        | {key: told["venues"][0][key] for key in ("taking liquidity", "adding liquidity")}
    ]
    assert told[FIELD] == content_marking(is_generated=False)
    assert "Costs so far" in page.read_text()
    assert '<meta name="artificially-generated" content="false">' in page.read_text()
    assert "slippage" in say("orders", "costs", traded)


def test_the_ledger_and_the_regulators_monitors_verify_what_was_traded(traded: Path) -> None:
    assert "judged again by the gate, positions add up" in say("ledger", "verify", traded)
    found = check_regulation((traded,), (), tuple(RuleRegime), Span())
    assert found.counts.num_order_events > 100
    breaches = [one for check in found.results for one in check.findings if one.severity is Severity.BREACH]
    assert breaches == []


def test_each_order_acts_on_a_decision_of_its_instrument(traded: Path) -> None:
    decisions: dict[int, DecisionNoted] = {}
    for event in order_events(traded):
        if isinstance(event, DecisionNoted):
            decisions[event.receipt.index] = event
        elif isinstance(event, NewOrder):
            assert event.decision is not None
            assert decisions[event.decision.index].instrument == event.instrument
    assert len(decisions) > 50


def test_requests_of_people_are_taken_once_by_the_run_that_goes_on(tmp_path: Path) -> None:
    prices, run = tmp_path / "prices.csv", tmp_path / "run"
    write_prices(prices, 40)
    say("trade", prices, "--out", run, "--plain", "--no-report")
    before = len(list(order_events(run)))
    said = say(
        "orders", "disable", run, "--scope", "instrument:AAA", "--by", "Ann Lee", "--why", "bad prices"
    )
    assert "does it when it resumes" in said
    write_prices(prices, 60)  # the same days, and more
    say("trade", prices, "--out", run, "--plain", "--no-report")
    events = list(order_events(run))[before:]
    disabled = [one for one in events if isinstance(one, TradingDisabled)]
    assert [(one.scope, one.cause, one.by) for one in disabled] == [
        ("instrument:AAA", "bad prices", "Ann Lee")
    ]
    assert sum(isinstance(one, MassCancelRequest) for one in events) == 1
    refused = [json.loads(line) for line in say("orders", "list", run, "--refused", "--json").splitlines()]
    reasons = [one["reason"] for one in refused if one["instrument"] == "AAA"]
    assert reasons
    assert all("instrument:AAA is disabled: bad prices" in one for one in reasons)
    assert "positions add up" in say("ledger", "verify", run)


def test_orders_that_were_removed_are_not_sent_again(tmp_path: Path) -> None:
    prices, run = tmp_path / "prices.csv", tmp_path / "run"
    write_prices(prices, 30)
    say("trade", prices, "--out", run, "--plain", "--no-report", "--outputs", "jsonl")
    shutil.rmtree(run / "orders")
    (run / "orders.jsonl").rename(tmp_path / "copy")
    words = ["trade", str(prices), "--out", str(run), "--plain", "--no-report"]
    with pytest.raises(
        IntegrityError, match=r"decisions and no orders.jsonl, so that orders would be sent again"
    ):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    (tmp_path / "copy").rename(run / "orders.jsonl")
    say(*words, "--outputs", "jsonl")
    assert "positions add up" in say("ledger", "verify", run)


def test_a_tick_that_is_coarser_than_the_prices_is_named(tmp_path: Path) -> None:
    prices, run = tmp_path / "prices.csv", tmp_path / "run"
    write_prices(prices, 30)
    (tmp_path / "desk.toml").write_text('[trading.instruments.AAA]\ntick = "1000"\n')
    say("trade", prices, "--settings", tmp_path / "desk.toml", "--out", run, "--plain", "--no-report")
    refused = [json.loads(line) for line in say("orders", "list", run, "--refused", "--json").splitlines()]
    reasons = {one["reason"] for one in refused if one["instrument"] == "AAA"}
    assert reasons
    assert all(
        "no price of AAA at XSIM is known, or none that reaches its tick of 1000" in one for one in reasons
    )
    assert "positions add up" in say("ledger", "verify", run)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("list",), "has no orders.jsonl"),
        (("cancel-all", "--by", "A", "--why", "w"), "has no orders.jsonl"),
    ],
)
def test_a_folder_that_never_traded_is_one_line(tmp_path: Path, words: tuple[str, ...], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        CliRunner().invoke(cli, ["orders", words[0], str(tmp_path), *words[1:]], catch_exceptions=False)


def gross_at_the_end(run: Path) -> float:
    positions = [json.loads(line) for line in say("orders", "positions", run, "--json").splitlines()]
    assert len(positions) == 2
    return sum(abs(one["lots"]) * {"AAA": 100.0, "BBB": 50.0}[one["instrument"]] for one in positions)


def test_the_book_is_held_to_the_shortfall_that_its_series_have_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two series that move on their own, under one bound: measured together they may be held in larger amounts."""
    write_prices(tmp_path / "prices.csv", 110)
    (tmp_path / "desk.toml").write_text(
        '[trading]\nsizing = "volatility"\ntarget_volatility = 2.0\nmax_weight = 5.0\nmax_gross = 10.0\n'
        "max_shortfall = 0.005\nshortfall_level = 0.9\n"
    )
    words = ["trade", tmp_path / "prices.csv", "--settings", tmp_path / "desk.toml", "--plain", "--out"]
    say(*words, tmp_path / "together")
    monkeypatch.setattr(Trader, "follow_dependence", lambda *_: None)
    say(*words, tmp_path / "apart")
    together, apart = gross_at_the_end(tmp_path / "together"), gross_at_the_end(tmp_path / "apart")
    assert 1.2 < together / apart < 2.0  # 1.41 for two independent normals of one size


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ("[trading]\nhorizon_bars = 3\n", "horizon_bars is 3: forecasts are for 1, 5, 22 bars"),
        ('[trading]\nvenue = ""\n', "trading.venue must be 1 to 64 long"),
        ('[trading]\nalgo = "a:b"\n', "trading.algo is 'a:b': a name without colon"),
        ('[trading]\ndesk = " d"\n', "trading.desk is ' d': a name without"),
        ('[trading.instruments.AAA]\ntick = "zero"\n', "trading.instruments.AAA.tick is 'zero'"),
        ('[trading.instruments.AAA]\ntick = "0.00000000001"\n', "with nine decimals at most"),
        ('[order_limits.by_scope."somebody"]\nmax_order_quantity = 1\n', "is no scope of orders"),
    ],
)
def test_settings_that_cannot_hold_stop_the_start(tmp_path: Path, settings: str, what: str) -> None:
    write_prices(tmp_path / "prices.csv", 5)
    (tmp_path / "desk.toml").write_text(settings)
    words = [
        "trade",
        tmp_path / "prices.csv",
        "--settings",
        tmp_path / "desk.toml",
        "--out",
        tmp_path / "run",
    ]
    with pytest.raises(InvalidInput, match=what):
        CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


def test_a_stopped_model_cancels_the_orders_that_rest_on_its_decisions(tmp_path: Path) -> None:
    prices, run, settings = tmp_path / "prices.csv", tmp_path / "run", tmp_path / "s.toml"
    settings.write_text("[trading]\nlimit_bps = 0.0\n")  # so that orders rest at the last price
    words = ("trade", prices, "--settings", settings, "--out", run, "--plain", "--no-report")
    write_prices(prices, 50)
    before = prices.read_text()
    say(*words)
    say("stop", run, "--scope", "model:ewma", "--by", "Ann", "--why", "odd")
    gaps_down = [
        f"{time.strftime('%Y-%m-%dT21:00:00Z', time.gmtime(1_262_304_000 + 86_400 * day))},{symbol},"
        + ",".join([f"{price * 0.97 ** (day - 49):.4f}"] * 4)
        + ",1000000"
        for day in range(50, 54)
        for symbol, price in (("AAA", 112.0), ("BBB", 52.0))
    ]
    prices.write_text(before + "\n".join(gaps_down) + "\n")
    say(*words)
    events = list(order_events(run))
    cancels = [one for one in events if isinstance(one, MassCancelRequest)]
    assert [(one.instrument, one.by, one.why) for one in cancels] == [
        (symbol, "governance log", "model:ewma: stop: command by Ann: odd") for symbol in ("AAA", "BBB")
    ]
    assert not any(isinstance(one, TradingDisabled) for one in events)
    orders = [json.loads(line) for line in say("orders", "list", run, "--num", 9_999, "--json").splitlines()]
    assert [one["status"] for one in orders[-2:]] == ["canceled", "canceled"]
    assert "judged again by the gate, positions add up" in say("ledger", "verify", run)

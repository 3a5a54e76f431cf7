"""`htfi regulate` as a person meets it, on a run of prices and news and on files of order events."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chromium import CHROMIUM, Chromium
from htfi.apps.cli.main import cli
from htfi.domain.decision import Receipt
from htfi.domain.errors import HtfiError
from htfi.domain.orders import encode_order_event
from htfi.governance.regulation.catalogue import CHECKS
from htfi.wiring.ledger import open_ledger_readonly
from htfi_train.simulation.order_flow.abusive import STRENGTHS, AbusePattern, add_abuser
from htfi_train.simulation.order_flow.honest import add_honest_parties
from htfi_train.simulation.order_flow.session import SessionSpec, TradingSession
from order_streams import ack, fill, limits, market, new

WIDTHS = (420, 1280)


def regulate(*words: object) -> Result:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["regulate", *map(str, words)])
    if done.exception is not None and not isinstance(done.exception, SystemExit | HtfiError):
        raise done.exception
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of forty daily bars."""
    folder = tmp_path_factory.mktemp("regulate")
    prices = folder / "prices.csv"
    days = [f"2024-{month:02}-{day:02}" for month in (3, 4) for day in range(1, 21)]
    lines = [f"{day},ACME,{100 + (7 * k) % 5}" for k, day in enumerate(days)]
    prices.write_text("date,symbol,close\n" + "\n".join(lines) + "\n")
    done = CliRunner().invoke(cli, ["run", str(prices), "--out", str(folder / "run")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return folder / "run"


def write_orders(path: Path, events) -> Path:
    path.write_bytes(b"".join(encode_order_event(event) + b"\n" for event in events))
    return path


def test_a_run_alone_is_judged_by_its_decisions(run: Path) -> None:
    done = regulate("check", run)
    assert done.exit_code == 0, done.output
    assert "0 found something" in done.output
    assert re.search(r"ai-logging .* nothing found", done.output)
    assert re.search(r"content-marking .* nothing found", done.output)
    assert re.search(r"price-collar .* cannot be judged from the record", done.output)


@pytest.mark.parametrize(
    ("regime", "own", "others"),
    [
        ("eu", "RTS 6", ("SEC", "FINRA", "Securities Law")),
        ("us", "SEC 15c3-5", ("RTS 6", "MAR", "Securities Law")),
        ("cn", "Securities Law", ("RTS 6", "MAR", "SEC 15c3-5", "FINRA")),
    ],
)
def test_a_report_cites_the_articles_of_its_regime(
    run: Path, tmp_path: Path, regime: str, own: str, others: tuple[str, ...]
) -> None:
    done = regulate("report", run, "--regime", regime, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    body = json.loads((tmp_path / "out" / "regulation.json").read_bytes())
    assert {name for one in body["checks"] for name in one["articles"]} == {regime}
    html = (tmp_path / "out" / "regulation.html").read_text()
    assert own in html
    assert [name for name in others if name in html] == []
    unjudged = [each["reason"] for one in body["checks"] for each in one["unjudged"]]
    assert "the record has no order events of this span" in unjudged


def test_orders_that_act_on_the_runs_decisions_hold(run: Path, tmp_path: Path) -> None:
    log = open_ledger_readonly(run)
    leaf = next(leaf for index, (_, leaf) in enumerate(log.signed_entries()) if index == 2)
    log.close()
    good = new("o", 0, decision=Receipt(2, leaf.hex()))
    orders = write_orders(
        tmp_path / "orders.jsonl", [limits(price_collar=0.1), market(-1), good, ack("o", 1)][1:]
    )
    assert re.search(r"decision-link .* nothing found", regulate("check", run, "--orders", orders).output)
    forged = write_orders(tmp_path / "forged.jsonl", [new("o", 0, decision=Receipt(2, "00" * 32))])
    done = regulate("check", run, "--orders", forged, "--regime", "eu")
    assert done.exit_code == 1
    assert (
        "decision-link breach: the order names another leaf hash than entry 2 of the ledger has"
        in done.output
    )


def test_rows_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    path = tmp_path / "orders.jsonl"
    path.write_bytes(b'{"kind":"teleport"}\n' + encode_order_event(new("o", 0)) + b"\n")
    done = regulate("check", "--orders", path, "--regime", "cn")
    assert done.exit_code == 0
    assert "orders.jsonl row 1:" in done.output
    assert "0 decisions, 1 order event" in done.output


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    """A report of the run and of a session with a spoofer, a breach of a limit and a row that is none."""
    folder = tmp_path_factory.mktemp("report")
    session = TradingSession(SessionSpec(5, length_s=1_200.0))
    add_honest_parties(session)
    add_abuser(session, AbusePattern.SPOOFING, STRENGTHS[-1])
    orders = write_orders(folder / "flow.jsonl", session.run())
    broken = [limits(max_order_quantity=5), market(0), new("big<o>", 1, quantity=50), fill("big<o>", 2, 50)]
    more = write_orders(folder / "more.jsonl", broken)
    more.write_bytes(more.read_bytes() + b"{}\n")
    done = regulate("report", run, "--orders", orders, "--orders", more, "--out", folder / "out")
    assert done.exit_code == 0, done.output
    return folder / "out"


def test_the_json_says_what_was_judged_found_and_not(report: Path) -> None:
    body = json.loads((report / "regulation.json").read_bytes())
    checks = {one["id"]: one for one in body["checks"]}
    assert list(checks) == [one.id for one in CHECKS]
    assert checks["spoofing"]["outcome"] == "found"
    assert {one["where"]["party"] for one in checks["spoofing"]["findings"]} == {"client:abuser"}
    volume = checks["order-volume"]["findings"]
    assert any(one["where"]["orders"] == ["big<o>"] and one["severity"] == "breach" for one in volume)
    assert checks["security"]["outcome"] == "cannot be judged from the record"
    assert (body["rows_set_aside"]["num"], body["counts"]["num_decisions"] > 0) == (1, True)
    assert body["content_marking"]["artificially_generated"] is False


def test_the_page_says_the_same_and_quotes_safely(report: Path) -> None:
    html = (report / "regulation.html").read_text()
    assert '<section id="spoofing">' in html
    assert "big&lt;o&gt;" in html
    assert "big<o>" not in html
    assert "What cannot be judged" in html
    assert "<script" not in html
    assert '<meta name="artificially-generated" content="false">' in html


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine: apt-get install chromium")
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_a_phone_and_a_laptop(report: Path, tmp_path: Path, width: int) -> None:
    with Chromium(tmp_path) as browser:
        browser.open(report / "regulation.html", width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.body.innerText").count("breach") >= 1
        assert browser.errors == []


def test_a_span_leaves_out_what_came_before(tmp_path: Path) -> None:
    orders = write_orders(tmp_path / "orders.jsonl", [limits(max_order_quantity=5), new("o", 1), ack("o", 2)])
    assert regulate("check", "--orders", orders).exit_code == 1
    done = regulate("check", "--orders", orders, "--from", "2024-10-05")
    assert done.exit_code == 0
    assert "0 order events" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to check"),
        (("--orders", "gone.jsonl"), "gone.jsonl: cannot be read"),
        (("--orders", "orders.txt"), "order files end in .jsonl"),
        (("nowhere",), "there is no ledger at nowhere"),
        (("--orders", "a.jsonl", "--from", "spring"), "--from: 'spring'"),
        (
            ("--orders", "a.jsonl", "--from", "2026-02-01", "--to", "2026-01-01"),
            "choose a span that holds some time",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, monkeypatch, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    done = regulate("check", *words)
    assert isinstance(done.exception, HtfiError)
    assert message in str(done.exception)


def test_attested_duties_are_judged(run: Path, tmp_path: Path) -> None:
    document = tmp_path / "validation.pdf"
    document.write_bytes(b"pages")
    done = regulate(
        "attest", run, "stress-test", "--by", "Ann Lee", "--why", "twice the peak", "--document", document
    )
    assert done.output == "stress-test attested by Ann Lee: twice the peak\n"
    assert re.search(r"stress-test .* nothing found", regulate("check", run).output)
    refused = regulate("attest", run, "stress-test", "--by", " ", "--why", "x")
    assert "--by: a name is required" in str(refused.exception)


def test_retention_by_command(run: Path, tmp_path: Path) -> None:
    planned = regulate("retention", "plan", run, "--at", "2040-01-01", "--class", "decision")
    assert "2034-12-28" in planned.output
    none = regulate("retention", "apply", run, "--at", "2024-05-01", "--by", "Ann", "--why", "a try")
    assert none.output == "nothing is due: nothing was deleted\n"
    wrong = regulate("retention", "plan", run, "--keep", "decision=soon")
    assert "write CLASS=DAYS" in str(wrong.exception)

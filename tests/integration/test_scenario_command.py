"""`htfi scenario` on a run's folder and on files, as a person calls it."""

import json
import math
import os
import re
import shutil
import subprocess
from datetime import date, timedelta
from html import escape, unescape

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.run import command as run
from htfi.apps.cli.scenario.command import command
from htfi.domain.errors import DependencyUnavailable, HtfiError, IntegrityError, InvalidInput
from htfi.forecasting.scenarios.positions import equal_positions
from htfi.forecasting.scenarios.requests import ScenarioKind, ScenarioRequest
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.scenarios.answers import answer_scenarios, forecast_today
from htfi.pipeline.scenarios.reading import forecast_now
from htfi.wiring.scenario import open_basis
from htfi.wiring.settings import load_settings

NUM_DAYS = 260
CPI = "US_CPI"
MISS = "AAA reports earnings below expectations"


def write_market(folder, num=NUM_DAYS):
    """A market of four from June 2008 on: SPX leads, AAA and BBB follow, VIX goes the other way; CPI moves SPX."""
    rng = np.random.default_rng(7)
    day, rows, news = date(2008, 6, 2), [], []
    prices = {"SPX": 1400.0, "AAA": 50.0, "BBB": 20.0, "VIX": 20.0}
    level = 200.0
    for n in range(num):
        market = rng.standard_normal()
        if n % 12 == 6:
            surprise = float(rng.choice([-1.0, 1.0]))
            level += surprise
            market -= 2.0 * surprise
            news.append({"published_at": f"{day}T08:30:00-05:00", "series": CPI, "value": level})
        moves = {"SPX": market, "AAA": 0.8 * market + 0.6 * rng.standard_normal(), "BBB": rng.standard_normal(),
                 "VIX": -4.0 * market + 2.0 * rng.standard_normal()}  # fmt: skip
        for symbol, move in moves.items():
            start = prices[symbol]
            prices[symbol] = end = start * math.exp(0.01 * move)
            high, low = max(start, end) * 1.001, min(start, end) * 0.999
            rows.append(f"{day},{symbol},{start:.4f},{high:.4f},{low:.4f},{end:.4f}")
        day += timedelta(days=1 if day.weekday() < 4 else 3)
    (folder / "prices.csv").write_text("date,symbol,open,high,low,close\n" + "\n".join(rows) + "\n")
    (folder / "macro.jsonl").write_text("".join(json.dumps(row) + "\n" for row in news))


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    write_market(folder)
    files = [str(folder / "prices.csv"), str(folder / "macro.jsonl")]
    result = CliRunner().invoke(run, [*files, "--out", str(folder / "run"), "--no-report", "--plain"])
    assert result.exit_code == 0, result.output
    return folder


def ask(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def figures(*arguments):
    result = ask(*arguments, "--json", "-")
    assert result.exit_code == 0, result.exception
    return json.loads(result.output)


def test_interval_may_be_named_otherwise_than_the_series_name_it(market):
    asked = [str(market / "run"), "--shock", "SPX -5%", "--draws", "300"]
    assert figures(*asked, "--interval", "24h") == figures(*asked, "--interval", "1d")


def refusal(*arguments, kind=InvalidInput) -> str:
    result = ask(*arguments)
    assert isinstance(result.exception, kind), (result.output, result.exception)
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_a_shock_changes_every_position_and_the_book_beside_the_unchanged(market):
    told = figures(market / "run", "--shock", "SPX -5%")
    (scenario,) = told["scenarios"]
    by_name = {row["series"]: row for row in scenario["positions"]}
    before = {row["series"]: row for row in told["positions"]}
    assert by_name["SPX/1d"]["quantiles"] == pytest.approx([-0.05] * 7)
    assert by_name["SPX/1d"]["way"] == "shocked"
    assert by_name["AAA/1d"]["way"] == "carried"
    middle = told["levels"].index(0.5)
    assert by_name["AAA/1d"]["quantiles"][middle] == pytest.approx(-0.04, abs=0.015)
    assert by_name["VIX/1d"]["quantiles"][middle] > 0.1
    assert abs(by_name["BBB/1d"]["quantiles"][middle]) < 0.01
    assert before["VIX/1d"]["holding"] == 0.0  # nobody holds an index of volatility
    assert before["AAA/1d"]["holding"] == pytest.approx(1 / 3)
    assert scenario["book"]["mean"] < -0.02 < told["book"]["mean"]
    assert scenario["chance"]["of"] == "the book"
    assert scenario["chance_of_moves"]["of"] == ["SPX/1d"]
    assert scenario["chance_of_moves"]["at_most"] < 3e-3


def test_today_is_what_the_newest_decisions_say(market):
    ground = open_basis([str(market / "run")], load_settings())
    now = forecast_now(ground)
    newest = {}
    for line in (market / "run" / "decisions.jsonl").read_bytes().splitlines():
        decision = decode_entry(json.dumps(json.loads(line)["decision"]).encode())
        newest[decision.series] = decision
    for place, series in enumerate(ground.series):
        assert now.batch.quantiles[place].tolist() == newest[series].forecast.quantiles
        assert ground.prices[place] == pytest.approx(newest[series].last_price)
    assert ground.as_of_ns == max(decision.as_of_ns for decision in newest.values())


def test_the_run_is_only_read_and_may_be_in_another_hand(market, tmp_path):
    folder = market / "run"

    def stamps():
        """Of every file but the index that SQLite's readers share, which each of them writes."""
        shared = ("ledger.db-shm", "ledger.db-wal")
        files = [file for file in folder.iterdir() if file.name not in shared]
        return {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = stamps()
    os.link(folder / "ledger.db", tmp_path / "held")  # the same file: were it written, this would tell
    assert ask(folder, "--shock", "SPX -5%", "--stress", "lehman_2008").exit_code == 0
    assert stamps() == before


def test_a_run_that_is_going_on_answers_as_well(market):
    from htfi.wiring.ledger import open_ledger

    held = open_ledger(market / "run", origin="htfi.run")
    try:
        assert ask(market / "run", "--shock", "SPX -5%").exit_code == 0
    finally:
        held.close()


def test_files_are_read_to_their_end_and_answer_as_the_run_does(market):
    from_files = figures(market / "prices.csv", market / "macro.jsonl", "--shock", "SPX -5%")
    from_run = figures(market / "run", "--shock", "SPX -5%")
    assert from_files["positions"] == from_run["positions"]
    assert from_files["scenarios"][0]["book"] == from_run["scenarios"][0]["book"]


def test_a_stress_takes_own_history_then_factors_then_what_they_carry(market):
    (lehman,) = figures(market / "run", "--stress", "lehman_2008", "--horizon", "5")["scenarios"]
    assert {row["way"] for row in lehman["positions"]} == {"own history"}
    assert "2008-09-12 to 2008-09-19" in lehman["moves"][0]
    (covid,) = figures(market / "run", "--stress", "covid_2020", "--horizon", "22")["scenarios"]
    ways = {row["series"]: row["way"] for row in covid["positions"]}
    assert ways == {"SPX/1d": "factor", "VIX/1d": "factor", "AAA/1d": "carried", "BBB/1d": "carried"}
    spx = next(row for row in covid["positions"] if row["series"] == "SPX/1d")
    assert spx["quantiles"] == pytest.approx([-0.267] * 7)


def test_a_macro_surprise_moves_a_series_of_the_run_or_answers_as_before(market):
    (vix,) = figures(market / "run", "--macro", "VIX +5")["scenarios"]
    assert next(row["way"] for row in vix["positions"] if row["series"] == "VIX/1d") == "shocked"
    (cpi,) = figures(market / "run", "--macro", "us cpi +2sd")["scenarios"]
    by_name = {row["series"]: row for row in cpi["positions"]}
    assert by_name["SPX/1d"]["way"] == "response"
    assert (
        by_name["SPX/1d"]["quantiles"][3] < -0.02
    )  # it has answered each surprise by two percent the other way
    assert abs(by_name["BBB/1d"]["quantiles"][3]) < 0.01
    assert cpi["chance_of_moves"] is None
    assert 0.0 < cpi["chance"]["probability"] < 0.5


def test_a_headline_is_read_for_whom_it_is_about_and_spreads_when_asked(market):
    told = figures(market / "run", "--headline", MISS, "--on", "AAA", "--on", "SPX")
    (scenario,) = told["scenarios"]
    ways = {row["series"]: row["way"] for row in scenario["positions"]}
    assert (ways["SPX/1d"], ways["AAA/1d"], ways["BBB/1d"]) == ("read", "read", "untouched")
    assert set(scenario["views"]) == {"SPX/1d", "AAA/1d"}
    assert 0.0 <= scenario["weight"] <= 1.0
    today = {row["series"]: row["quantiles"] for row in told["positions"]}
    full = {row["series"]: row["quantiles"] for row in scenario["at_full_weight"]["positions"]}
    earned = {row["series"]: row["quantiles"] for row in scenario["positions"]}
    assert full["BBB/1d"] == today["BBB/1d"]
    moved, earned_move = (abs(row["AAA/1d"][3] - today["AAA/1d"][3]) for row in (full, earned))
    assert full["AAA/1d"][3] < today["AAA/1d"][3]
    assert earned_move <= moved
    (spread,) = figures(market / "run", "--headline", MISS, "--on", "AAA", "--spread")["scenarios"]
    carried = {row["series"]: row for row in spread["at_full_weight"]["positions"]}
    assert carried["VIX/1d"]["way"] == "carried"
    assert carried["VIX/1d"]["quantiles"][3] > today["VIX/1d"][3]


def test_a_headline_moves_a_series_as_its_facts_say_whatever_a_model_reads(market):
    hike, cut = (
        "Fed raises rates by 75 basis points, more than expected",
        "Fed unexpectedly cuts interest rates",
    )
    told = figures(market / "run", "--headline", hike, "--headline", cut, "--on", "SPX")
    (today,) = (row["quantiles"] for row in told["positions"] if row["series"] == "SPX/1d")
    medians = []
    for scenario in told["scenarios"]:
        assert ", with facts" in scenario["views"]["SPX/1d"]["reader"]
        (row,) = (row for row in scenario["at_full_weight"]["positions"] if row["series"] == "SPX/1d")
        medians.append(row["quantiles"][3])
    assert medians[0] < today[3] < medians[1]


def test_a_hypothetical_headline_leaves_no_trace_in_the_rooms(market):
    ground = open_basis([str(market / "run")], load_settings())
    wire = ground.components.news.held.readable.state()
    now = forecast_now(ground)
    asked = [ScenarioRequest(ScenarioKind.HEADLINE, "SPX plunges as banks fail")] * 2
    positions = equal_positions(ground.series, [True] * len(ground.series))
    answers = answer_scenarios(
        ground, now, forecast_today(ground, now, None, 0, 500), asked, positions, spreads=False
    )
    assert ground.components.news.held.readable.state() == wire
    one, other = answers.answers
    assert all((one.draws[place] == other.draws[place]).all() for place in one.draws)
    assert one.draws.keys() == other.draws.keys()


def test_after_a_shock_the_run_itself_says_what_would_follow(market):
    told = figures(market / "run", "--shock", "SPX -9%", "--shock", "SPX +0.1%", "--after")
    today = {row["series"]: row["quantiles"][5] - row["quantiles"][1] for row in told["positions"]}
    wild, still = ({row["series"]: row for row in scenario["after"]} for scenario in told["scenarios"])
    low, high = wild["SPX/1d"]["band90"]
    assert (
        high - low > 1.08 * today["SPX/1d"]
    )  # volatility here is constant, as the mix of experts has learnt
    assert wild["SPX/1d"]["regime"] in ("stressed", "shock")
    low, high = still["SPX/1d"]["band90"]
    assert high - low < 1.1 * today["SPX/1d"]
    assert "leave out --horizon" in refusal(market / "run", "--shock", "SPX -9%", "--after", "--horizon", "5")


def test_positions_in_money_are_told_in_money(market, tmp_path):
    book = tmp_path / "book.csv"
    book.write_text("symbol;quantity\nSPX;100\nAAA;-1000\n")
    told = figures(market / "run", "--shock", "SPX -5%", "--positions", book)
    assert told["unit"] == "money"
    spx = next(row for row in told["positions"] if row["series"] == "SPX/1d")
    assert spx["holding"] == pytest.approx(100 * spx["price"])
    shares = [row["share_of_es"] for row in told["scenarios"][0]["positions"]]
    assert sum(shares) == pytest.approx(told["scenarios"][0]["book"]["es_0.975"], rel=1e-6)
    assert "k" in ask(market / "run", "--shock", "SPX -5%", "--positions", book).output


def test_a_batch_prints_a_comparison_and_writes_a_page_without_network_or_script(market, tmp_path):
    many = tmp_path / "many.toml"
    many.write_text(
        '[[scenario]]\nname = "<b>bad</b> day"\nshock = "SPX -3sd, VIX +5"\n[[scenario]]\nstress = "brexit_2016"\n'
    )
    page = tmp_path / "deep" / "page.html"
    result = ask(market / "run", "--file", many, "--macro", "US_CPI +1sd", "--html", page)
    assert result.exit_code == 0, result.exception
    for part in (
        "all scenarios, worst for the book first",
        "<b>bad</b> day",
        "Britain votes to leave",
        "VaR 99%",
    ):
        assert part in result.output
    assert max(len(line) for line in result.output.splitlines() if "“" not in line) <= 132
    text = page.read_text()
    assert "&lt;b&gt;bad&lt;/b&gt; day" in text
    assert "<b>bad</b>" not in text
    for foreign in ("<script", "http://", "https://", "@@", "nan", "NaN"):
        assert foreign not in text.replace("http-equiv", "")
    assert text.count("<section>") == 4


def chances_of(text: str) -> list[str]:
    return re.findall(r"rarer than 1 in [\d,]+|about 1 in [\d,]+|[\d.]+%(?= \([\d,]+ of)", text)


def test_a_stress_on_what_is_not_held_has_the_chance_of_the_books_own_loss(market, tmp_path):
    """Words, table, JSON and page have one chance, whatever symbol comes first in the alphabet."""
    book, page = tmp_path / "book.csv", tmp_path / "page.html"
    book.write_text("symbol,notional\nSPX,1700000\nBBB,-300000\n")
    asked = ("--stress", "covid_2020", "--horizon", "22", "--positions", book, "--shock", "AAA -0.5%")
    told = figures(market / "run", *asked)
    shock, covid = told["scenarios"]
    assert covid["book"]["mean"] < -told["book"]["var_0.99"]
    assert covid["chance"]["of"] == "the book"
    assert covid["chance"]["at_most"] <= 0.01
    assert covid["chance_of_moves"]["of"] == ["SPX/1d", "VIX/1d"]
    assert shock["chance"]["probability"] > 0.2  # the book holds no AAA, and ends near where it was
    output = ask(market / "run", *asked, "--html", page).output
    text = page.read_text()
    for scenario in (shock, covid):
        whole = scenario["chance"]["text"]
        figure = chances_of(whole)[0]
        assert whole in scenario["rationale"]["text"]
        assert whole in " ".join(output.split())
        assert figure in output.partition("all scenarios")[2]
        assert f"<b>{figure}</b>" in text


def test_a_chance_beyond_the_draws_names_how_many_there_were(market):
    (far,) = figures(market / "run", "--shock", "SPX -40%", "--draws", "700")["scenarios"]
    assert far["chance_of_moves"]["probability"] is None
    assert far["chance_of_moves"]["at_most"] == pytest.approx(1 / 700)
    assert far["chance_of_moves"]["scenarios"] == [0, 700]
    assert far["chance_of_moves"]["text"].startswith("rarer than 1 in 700 (never in 700 scenarios, nor in ")


def test_gross_and_net_are_both_named_wherever_the_book_is(market, tmp_path):
    book, page = tmp_path / "book.csv", tmp_path / "page.html"
    book.write_text("symbol,notional\nSPX,1700000\nAAA,-300000\n")
    told = figures(market / "run", "--shock", "SPX -5%", "--positions", book)
    assert (told["book"]["gross"], told["book"]["net"]) == (2e6, 1.4e6)
    result = ask(market / "run", "--shock", "SPX -5%", "--positions", book, "--html", page)
    output = " ".join(result.output.split())
    for place in ("the book (2M gross, 1.4M net)", "net 1.4M", "holdings: gross 2M, net 1.4M"):
        assert place in output
    assert "gross 2M" in page.read_text()
    assert "net 1.4M" in page.read_text()


def test_all_stresses_are_those_that_the_run_can_answer(market, tmp_path):
    rows = (market / "prices.csv").read_text().splitlines()
    only = [rows[0], *(row for row in rows[1:] if ",BBB," in row)]
    (tmp_path / "b.csv").write_text("\n".join(only) + "\n")
    told = figures(tmp_path / "b.csv", "--stress", "all")
    assert {scenario["asked"] for scenario in told["scenarios"]} == {"lehman_2008", "crash_2008"}
    assert "crash_1987" in told["notes"][-1]
    assert "reaches back" in refusal(tmp_path / "b.csv", "--stress", "crash_1987")


def test_a_headline_says_nothing_of_the_buyer_and_is_read_for_those_it_names(market, tmp_path):
    text = (market / "prices.csv").read_text()
    (tmp_path / "firms.csv").write_text(text.replace(",AAA,", ",GS,").replace(",BBB,", ",AIG,"))
    headline = "Goldman Sachs to buy AIG for 40 billion dollars"
    (buyer,) = figures(tmp_path / "firms.csv", "--headline", headline, "--on", "GS")["scenarios"]
    assert buyer["roles"] == {"GS/1d": "acquirer"}
    assert buyer["views"]["GS/1d"]["confidence"] == 0.0
    assert "GS/1d is the buyer" in buyer["rationale"]["text"]
    assert "target" not in buyer["rationale"]["text"]
    assert buyer["chance"] is None
    (both,) = figures(tmp_path / "firms.csv", "--headline", headline)["scenarios"]
    assert set(both["views"]) == {"GS/1d", "AIG/1d"}
    assert both["views"]["AIG/1d"]["direction"] > 0.0
    assert both["views"]["GS/1d"]["confidence"] == 0.0


@pytest.mark.parametrize("width", [80, 160])
def test_text_keeps_to_the_columns_that_there_are_and_cuts_nothing(market, tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    book = tmp_path / "book.csv"
    book.write_text("symbol,notional\nSPX,1700000.25\nAAA,-3123456.5\nBBB,45678.9\n")
    name = "a name of nearly sixty characters that says what is supposed"
    (tmp_path / "s.toml").write_text(f'[[scenario]]\nshock = "SPX -5%, VIX +5"\nname = "{name}"\n')
    asked = ("--file", tmp_path / "s.toml", "--headline", MISS, "--on", "AAA", "--stress", "lehman_2008")
    output = ask(market / "run", *asked, "--positions", book).output
    lines = output.splitlines()
    assert len(lines) > 40
    assert max(map(len, lines)) <= width
    assert name in " ".join(output.split())
    for cut in ("Va…", "ES…", "…%", "then…", "prof…"):
        assert cut not in output
    for row in ("book: VaR 99%", "holdings: gross"):
        assert any(line.startswith(f" {row}") for line in lines)  # lines under a table, not rows of it
    library = ask("--stress", "list").output
    assert max(map(len, library.splitlines())) <= width
    assert "carry_2024" in library
    assert "yield -8 bp" in library or "-8" in library


_MEASURE = """
const told = [];
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = frame.contentWindow;
  let small = 99, right = 0;
  for (const one of page.querySelectorAll("body *")) {
    if (one.tagName === "title" || !one.getClientRects().length) continue;
    if (![...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
    let size = parseFloat(view.getComputedStyle(one).fontSize);
    const svg = one.ownerSVGElement;
    if (svg) size *= svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    small = Math.min(small, size);
    right = Math.max(right, one.getBoundingClientRect().right);
  }
  const axes = [...page.querySelectorAll(".axis, .plot")].map(axis => {
    const ticks = [...axis.querySelectorAll("span.x")].filter(tick => tick.getClientRects().length)
      .map(tick => tick.getBoundingClientRect());
    return ticks.every((tick, place) => !place || ticks[place - 1].right <= tick.left + 1);
  });
  told.push({wide: page.documentElement.scrollWidth, room: page.documentElement.clientWidth, small, right,
             apart: axes.every(Boolean), axes: axes.length});
}
document.body.innerHTML = "<pre>" + JSON.stringify(told) + "</pre>";
"""


def test_the_page_is_legible_on_a_telephone_and_on_wide_screens(market, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here to lay the page out")
    page, widths = tmp_path / "page.html", (420, 1280, 1920)
    asked = (
        "--shock",
        "SPX -5%, VIX +5",
        "--stress",
        "lehman_2008",
        "--headline",
        MISS,
        "--on",
        "AAA",
        "--after",
    )
    assert ask(market / "run", *asked, "--html", page).exit_code == 0
    inner = escape(page.read_text())
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{inner}"></iframe>' for width in widths)
    outer = tmp_path / "outer.html"
    outer.write_text(f"<body>{frames}<script>onload = () => {{{_MEASURE}}}</script></body>")
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=2400,1200", "--virtual-time-budget=4000", "--dump-dom", outer.as_uri()],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    found = re.search(r"<pre>(.*)</pre>", done.stdout)
    assert found is not None, done.stderr[-2_000:]
    measured = json.loads(unescape(found[1]))
    assert len(measured) == len(widths)
    for one, width in zip(measured, widths, strict=True):
        assert one["wide"] <= one["room"] <= width, (width, one)
        assert one["right"] <= one["room"] + 1, (width, one)
        assert one["small"] >= 13.0, (width, one)
        assert one["axes"] > 8
        assert one["apart"], (width, one)


def test_every_figure_of_a_rationale_is_a_slot(market):
    from htfi.library.scenarios.rationale import SENTENCES

    assert not any(char.isdigit() for sentence in SENTENCES.values() for char in sentence)
    for scenario in figures(market / "run", "--shock", "SPX -5%", "--stress", "covid_2020")["scenarios"]:
        told = scenario["rationale"]
        parts = told["template"].split("+")
        again = " ".join(
            SENTENCES[part].format_map(slots) for part, slots in zip(parts, told["slots"], strict=True)
        )
        assert again == told["text"]


def test_the_library_is_listed_without_a_run():
    output = ask("--stress", "list").output
    (lehman,) = [line for line in output.splitlines() if "lehman_2008" in line]
    assert "-4.7" in lehman
    (lehman,) = [
        line for line in ask("--stress", "list", "--horizon", "22").output.splitlines() if "lehman" in line
    ]
    assert "-20.3" in lehman


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "no scenario"),
        (["--shock", "NOPE -5%"], "no series 'NOPE'"),
        (["--shock", "SPX five"], "cannot be read"),
        (["--shock", "SPX -2000"], "above zero"),
        (["--shock", "SPX -5%", "--horizon", "3"], "choose one of them"),
        (["--shock", "SPX -5%", "--interval", "7s"], "no series of interval 7s"),
        (["--macro", "GDP +1sd"], "knows no 'GDP'"),
        (["--macro", "US_CPI +1sd, GDP +1sd"], "one at a time"),
        (["--stress", "lehmann"], "did you mean lehman_2008"),
        (["--headline", "  \u200b "], "empty"),
        (["--headline", "x" * 5_000], "5,000 characters"),
        (["--headline", "x", "--on", "NOPE"], "no series 'NOPE'"),
        (["--on", "SPX", "--shock", "SPX -5%"], "--headline"),
        (["--file", "/nonexistent.toml"], "cannot be read"),
        (["--shock", "SPX -5%", "--positions", "/nonexistent.csv"], "cannot be read"),
    ],
)
def test_bad_input_is_one_clear_line(market, options, word):
    assert word in refusal(market / "run", *options, kind=HtfiError)


def test_folders_without_a_usable_state_are_refused_in_one_line(market, tmp_path):
    assert "state.bin is missing" in refusal(tmp_path, "--shock", "SPX -5%")
    assert "name it alone" in refusal(market / "run", market / "prices.csv", "--shock", "SPX -5%")
    assert "name the folder" in refusal("--shock", "SPX -5%")
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("settings.json", "state.bin"):
        (broken / name).write_bytes((market / "run" / name).read_bytes())
    (broken / "settings.json").write_text(
        (market / "run" / "settings.json").read_text().replace('"ewma_decay":0.94', '"ewma_decay":0.9')
    )
    assert "other settings" in refusal(broken, "--shock", "SPX -5%")
    (broken / "state.bin").write_bytes(b"\x00garbage")
    refusal(broken, "--shock", "SPX -5%", kind=IntegrityError)
    cut = (market / "run" / "state.bin").read_bytes()
    (broken / "state.bin").write_bytes(cut[: len(cut) // 2])
    refusal(broken, "--shock", "SPX -5%", kind=IntegrityError)


def test_a_file_that_is_too_short_says_how_much_is_needed(tmp_path):
    write_market(tmp_path, num=5)
    assert "a forecast needs" in refusal(tmp_path / "prices.csv", "--shock", "SPX -5%")


def test_a_page_that_cannot_be_written_is_one_line(market, tmp_path):
    (tmp_path / "file").write_text("")
    refusal(
        market / "run",
        "--shock",
        "SPX -5%",
        "--html",
        tmp_path / "file" / "p.html",
        kind=DependencyUnavailable,
    )

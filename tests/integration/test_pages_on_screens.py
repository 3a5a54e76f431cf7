"""Every page on a phone, a laptop and a large screen, in Chromium: nothing scrolls sideways, nothing is too small."""

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from chromium import CHROMIUM, Chromium
from htfi.apps.cli.report.command import write_report
from htfi.domain.decision import Decision, NewsTilt
from htfi.domain.news_view import NewsView
from htfi.library.charts import specs
from htfi_eval.bench.decode.measurements import DecodeRuns
from htfi_eval.bench.decode.measurements import charts as decode_charts
from htfi_eval.bench.decode.methods import CHAIN, CHAIN_OF_8, PLAIN
from htfi_eval.bench.decode.methods import DecodeMeasurement as Decoded
from htfi_eval.bench.link.figures import charts as link_charts
from htfi_eval.bench.link.runs import ALL_PLACEMENTS, LinkMeasurement
from htfi_eval.report import write_page
from htfi_eval.results import Card, Evaluation

WIDTHS = (420, 1280, 1920)
LEAST_PX = 13.0
READERS = ("16 answers of a-target-with-a-rather-long-name-fp32@d7d586dafc64", "mini-draft-int8@48d2d06d8abf")
ROWS = [{"what": f"shipped · way {k}", **{f"column {c}": 1234.5 * c for c in range(14)}} for k in range(5)]
NOTE = "a peer of some name: is not installed, so it is left out of the table above"
WORD = "an_identifier_without_any_blank_that_goes_on_for_longer_than_a_phone_is_wide_" * 2

# The smallest type on the page, px, as it is drawn: SVG may be scaled.
SMALLEST = """(() => Math.min(...[...document.querySelectorAll("body *")].filter((e) =>
  e.getBoundingClientRect().width && !["SCRIPT", "STYLE", "OPTION"].includes(e.tagName)
  && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
    const m = e.ownerSVGElement ? e.getScreenCTM() : null;
    return parseFloat(getComputedStyle(e).fontSize) * (m ? Math.hypot(m.a, m.b) : 1);
  })))()"""
TICKS = """[...document.querySelectorAll("#fan .xtick text")].map((e) => [e.textContent, e.getBoundingClientRect().left,
  e.getBoundingClientRect().right])"""

needs_chromium = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium on this machine: apt-get install chromium"
)


def read_by(decision: Decision, reader: str) -> Decision:
    view = NewsView(
        1.0,
        2.0,
        1.5,
        0.6,
        ("n1",),
        decision.as_of_ns,
        10**15,
        "rates",
        words="money is cheaper",
        reader=reader,
    )
    num = len(decision.forecast.horizons)
    tilt = NewsTilt(reader, [0.001] * num, [1.1] * num, [0.2] * num, 0.4)
    forecast = msgspec.structs.replace(decision.forecast, tilt=tilt)
    return msgspec.structs.replace(decision, view=view, forecast=forecast)


def fallen(decisions: list[Decision], to: float) -> list[Decision]:
    """The same with prices that end at that share of where they were."""
    last = len(decisions) - 1
    return [
        msgspec.structs.replace(one, last_price=one.last_price * to ** (k / last))
        for k, one in enumerate(decisions)
    ]


@pytest.fixture
def make_report(make_decisions, write_journal) -> Callable[[Path], object]:
    return partial(fill_report, make_decisions, write_journal)


@pytest.fixture
def report(made_once, make_report) -> Path:
    return made_once("report_on_screens", make_report) / "report.html"


@pytest.fixture
def report_on_phone(browser, report) -> Chromium:
    """A browser that shows it; drawn again only where another page or width was shown since."""
    if browser.shown != (report, 420):
        browser.open(report, 420)
    return browser


def fill_report(make_decisions, write_journal, folder: Path) -> None:
    decisions = make_decisions(300, ("SPX", f"{WORD[:70]}", "VIX"), withhold_every=50)
    decisions = [read_by(one, READERS[k % 2]) if k % 9 == 0 else one for k, one in enumerate(decisions)]
    write_journal(folder, decisions)
    rows = [{"source": WORD, "row": 7, "reason": "bad_bar", "detail": WORD, "raw": WORD}]
    (folder / "quarantine.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    assert write_report(folder) == folder / "report.html"


@pytest.fixture
def bench_decode(tmp_path) -> Path:
    runs = DecodeRuns("shipped")
    for kind in ("view, T 0", "words, T 1"):
        for way in (PLAIN, CHAIN, CHAIN_OF_8):
            runs.add(kind, way, [Decoded(10, 4.0, 9.0, 1.0, 2.0, 0.0, 3, [4, 2], [3, 1], 0, 0, False, "t")])
    file = tmp_path / "decode.html"
    charts = decode_charts([runs], CHAIN, CHAIN_OF_8)
    rows = [*ROWS, {"what": NOTE}]
    write_page(
        file,
        Evaluation(
            name="decode",
            kind="bench",
            metrics={"gain_of_all": 1.5},
            charts=charts,
            rows=rows,
            notes=["5 runs"],
        ),
    )
    return file


@pytest.fixture
def bench_link(tmp_path) -> Path:
    def run(scale: float) -> dict:
        return {
            manner: LinkMeasurement("r", (1, 2), 1.0, 50.0 * scale, 10, "cloud1, plain")
            for manner in ALL_PLACEMENTS
        }

    runs = {"shipped": {rtt: {"view": [run(1 + rtt)]} for rtt in (0.0, 5.0, 20.0, 50.0, 100.0, 200.0)}}
    file = tmp_path / "link.html"
    write_page(
        file,
        Evaluation(
            name="link",
            kind="bench",
            metrics={"regret": 0.1},
            charts=link_charts(runs),
            rows=ROWS,
            notes=[NOTE],
        ),
    )
    return file


@pytest.fixture
def evaluation(tmp_path) -> Path:
    days = [f"20{y:02}-{m:02}-01" for y in range(6, 17) for m in range(1, 13)]
    wave = [math.sin(k / 5) for k in range(len(days))]
    charts = [
        specs.FanChart(
            "Fan",
            NOTE,
            days,
            [specs.IntervalBand(0.9, [w - 1 for w in wave], [w + 1 for w in wave])],
            wave,
            "%",
        ),
        specs.TimeLines(
            "Lines", "", days, [specs.Curve(WORD, wave)], spans=[specs.TimeSpan("crisis", days[9], days[30])]
        ),
        specs.CurveChart(
            "ROC", "", [0.0, 0.5, 1.0], [specs.Curve("m", [0.0, 0.7, 1.0])], "share", "share", True
        ),
        specs.BarChart("Ratios", "", [WORD, "b"], [0.98, 1.02], [0.97, 0.99], [0.99, 1.05], 1.0, "×"),
        specs.HistogramChart("PIT", "", [0.25, 0.25, 0.2, 0.3], num=200),
        specs.DotChart(
            "Dots",
            "",
            ["calm", WORD],
            [specs.DotGroup("fused", [0.9, 1.0]), specs.DotGroup("ewma", [1.0, 1.1])],
        ),
        specs.HeatMap(
            "Heat", "", ["row"], [f"column {c}" for c in range(20)], [[float(c) for c in range(20)]]
        ),
    ]
    file = tmp_path / "evaluation.html"
    cards = [Card("0.981", "of EWMA's CRPS", True)]
    write_page(
        file,
        Evaluation(
            name="returns",
            metrics={"a_metric": 0.5},
            cards=cards,
            charts=charts,
            rows=[*ROWS, {"what": NOTE}],
        ),
    )
    return file


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@needs_chromium
@pytest.mark.parametrize("kind", ["report", "bench_decode", "bench_link", "evaluation"])
def test_a_page_fits_every_screen_in_type_that_can_be_read(request, browser, kind):
    page = request.getfixturevalue(kind)
    for width in WIDTHS:
        browser.open(page, width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(SMALLEST) >= LEAST_PX - 0.05
    assert browser.errors == []


@needs_chromium
def test_columns_that_decide_are_on_a_phone_s_screen_whatever_readers_are_called(report_on_phone):
    ends = report_on_phone.run(
        """[...document.querySelectorAll("th")]
        .filter((e) => ["right", "change", "weight at the end"].includes(e.textContent))
        .map((e) => e.getBoundingClientRect().right)"""
    )
    assert len(ends) == 3
    assert max(ends) <= 420


@pytest.mark.slow
@needs_chromium
def test_a_fall_of_99_percent_is_drawn_on_a_logarithmic_scale_and_a_walk_is_not(
    browser, tmp_path, make_decisions, write_journal
):
    walk, crash = make_decisions(120, ("SPX",)), fallen(make_decisions(120, ("AIG",)), 0.01)
    write_journal(tmp_path / "walk", walk)
    write_journal(tmp_path / "crash", crash)
    scales = {}
    for name in ("walk", "crash"):
        browser.open(write_report(tmp_path / name), 420)
        scales[name] = browser.run("document.getElementById('fan')._fullLayout.yaxis.type")
    assert scales == {"walk": "linear", "crash": "log"}
    texts = browser.run("[...document.querySelectorAll('#fan .ytick text')].map((e) => e.textContent)")
    assert len(texts) >= 3
    assert len(set(texts)) == len(texts)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [420, 1280])
def test_ticks_of_the_report_s_time_axis_say_different_things_and_stand_apart(browser, report, width):
    browser.open(report, width)
    ticks = browser.run(TICKS)
    assert len(ticks) >= 2
    assert len({text for text, _, _ in ticks}) == len(ticks)
    assert all(right < left for (_, _, right), (_, left, _) in pairwise(ticks))


@needs_chromium
def test_ticks_are_years_months_days_or_times_as_the_span_needs(report_on_phone):
    for num, step_ms, looks in (
        (2_700, 864e5, r"\d{4}"),  # years
        (250, 864e5, r"[A-Z][a-z]{2}( \d{4})?"),  # months
        (9, 864e5, r"\d{1,2} [A-Z][a-z]{2}( \d{4})?"),  # days
        (300, 6e4, r"(\d{1,2} [A-Z][a-z]{2} )?\d\d:\d\d"),  # times
        (40, 500, r"(\d{1,2} [A-Z][a-z]{2} )?\d\d:\d\d:\d\d"),
    ):
        ticks = report_on_phone.run(
            f"""(() => {{ const places = [...Array({num}).keys()], times = places.map((k) => 1.2e12 + k * {step_ms});
            return axis.times(places, times, 0, {num - 1}, 330); }})()"""
        )["ticktext"]
        assert len(ticks) >= 2
        assert len(set(ticks)) == len(ticks)
        assert [text for text in ticks if not re.fullmatch(looks, text)] == []


def test_no_page_sets_type_below_13_px_and_each_tells_phones_its_width():
    styles = [
        files("htfi.apps.cli.report") / "page.css",
        files("htfi.apps.cli.scenario") / "page.css",
        files("htfi.apps.display") / "page.css",
    ]
    sizes = [
        float(size)
        for style in styles
        for size in re.findall(r"(?:font-size:|font:) ?([\d.]+)px", style.read_text())
    ]
    assert len(sizes) > 20
    assert min(sizes) >= LEAST_PX
    frame = files("htfi.apps.display") / "page.html"
    assert 'content="width=device-width, initial-scale=1"' in frame.read_text()


def test_a_note_among_rows_stands_under_the_page_s_table(bench_decode, evaluation):
    for page in (bench_decode, evaluation):
        text = page.read_text()
        assert text.count(NOTE) >= 1
        assert f"<td>{NOTE}</td>" not in text
        assert f"<li>{NOTE}</li>" in text

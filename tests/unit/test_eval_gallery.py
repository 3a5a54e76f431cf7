"""Pages of evaluations: every chart is well-formed, whatever it is given, and the page loads nothing."""

import json
import math
import re
import xml.etree.ElementTree as ET
from datetime import date, timedelta
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.library.charts.figures import _even_band, chart_html
from htfi.library.charts.frame import date_ticks, number, ticks, when
from htfi.library.charts.specs import (
    BarChart,
    Curve,
    CurveChart,
    DotChart,
    DotGroup,
    FanChart,
    HeatMap,
    HistogramChart,
    IntervalBand,
    StackChart,
    TimeLines,
    TimeSpan,
)
from htfi_eval.report import command as report_command
from htfi_eval.report import write_outputs, write_page
from htfi_eval.results import Card, Evaluation, read_result

NAN, INF = math.nan, math.inf
DAYS = [(date(2007, 12, 20) + timedelta(days=k)).isoformat() for k in range(60)]
WAVE = [math.sin(k / 5) for k in range(60)]
CHARTS = [
    FanChart("Fan", "n", DAYS, [IntervalBand(0.9, [w - 1 for w in WAVE], [w + 1 for w in WAVE])], WAVE, "%"),
    FanChart("Gaps", "", DAYS, [IntervalBand(0.5, [NAN, *WAVE[1:]], [None, *WAVE[1:]])], [INF, *WAVE[1:]]),
    FanChart("Empty", "", [], [], []),
    TimeLines(
        "Stacked", "", DAYS, [Curve("a", [0.4] * 60), Curve("b", [0.6] * 59)], stacked=True,
    ),
    TimeLines(
        "Spans", "", DAYS, [Curve("a", WAVE), Curve("b", [None] * 60)], "bp", level=0.2,
        spans=[TimeSpan("Crisis <1>", "2007-12-25", "2008-01-02"), TimeSpan("Elsewhere", "1990-01-01", "1990-02-01"),
               TimeSpan("no date", "soon", "later")],
        marks=["2008-01-03", "never"],
    ),
    TimeLines("One point", "", ["2020-02-29"], [Curve("a", [3.0])]),
    TimeLines("Words for times", "", ["a", "b"], [Curve("a", [1.0, -INF])]),
    TimeLines("Nothing known", "", DAYS, [Curve("a", [NAN] * 60)]),
    TimeLines("Same instant", "", ["2020-01-01"] * 3, [Curve("a", [1.0, 2.0, 3.0])]),
    CurveChart("ROC", "", [], [Curve("m", [0.0, 0.7, 1.0], x=[0.0, 0.2, 1.0])], "x", "y", True),
    CurveChart("Areas", "", [0.1, 0.5], [Curve("m", [0.1, None], counts=[900.0, 3.0])], "x", "y", True),
    CurveChart("Constant", "", [1.0, 2.0], [Curve("m", [5.0, 5.0])], "x", "y"),
    CurveChart("No curve", "", [], [], "x", "y"),
    HistogramChart("PIT", "", [0.25, 0.25, 0.2, 0.3], num=200),
    HistogramChart("Leads", "", [0.5, NAN, 0.5], even=False, low=0, high=22),
    HistogramChart("None", "", []),
    BarChart("Ratios", "", ["a & b", "long " * 30, "c"], [0.98, 1.02, NAN], [0.97, 0.99], [0.99, 1.05], 1.0, "×"),
    BarChart("Equal", "", ["a"], [1.0], zero=1.0),
    DotChart("Dots", "", ["calm", "shock"], [DotGroup("m", [0.9, None], [0.88], [0.91])], 0.9, [0.95], "%"),
    CurveChart("Powers", "", [1.0, 20.0, 200.0], [Curve("m", [3.0, 40.0, 900.0])], "x", "y", log=True),
    StackChart("Parts", "", ["a & b", "c"], [DotGroup("one", [1.0, None]), DotGroup("two", [0.5, 2.0])], "ms"),
    StackChart("No part", "", ["a"], []),
    HeatMap("Heat", "", ["r<"], ["c1", "c2"], [[0.1, NAN]]),
    HeatMap("Wide", "", ["r"], [f"c{k}" for k in range(30)], [[0.0] * 30]),
]  # fmt: skip


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_every_chart_is_well_formed_and_holds_no_nan(chart):
    html = chart_html(chart)
    assert ET.fromstring(html).tag == "figure"
    for path in re.findall(r' (?:d|x|y|width|height|style)="([^"]*)"', html):
        assert "nan" not in path.lower()
        assert "inf" not in path.lower()
    for told in re.findall(r'<script type="application/json">(.*?)</script>', html):
        read = json.loads(told)
        assert all(0 <= at <= 1000 for at in read["x"])
        assert all(len(values) <= len(read["told"]) for _, values in read["curves"])


def test_a_chart_without_values_says_so():
    assert "no value is known" in chart_html(TimeLines("t", "", DAYS, [Curve("a", [NAN] * 60)]))
    assert "no value is known" not in chart_html(TimeLines("t", "", DAYS, [Curve("a", WAVE)]))


def test_a_gap_lifts_the_pen():
    html = chart_html(TimeLines("t", "", DAYS[:40], [Curve("a", [*WAVE[:15], None, *WAVE[16:40]])]))
    assert re.search(r'<path class="line c0" d="([^"]*)"', html).group(1).count("M") == 2


def test_only_what_left_the_widest_band_is_marked():
    actual = [0.0] * 60
    actual[7] = 9.0
    fan = FanChart(
        "t",
        "",
        DAYS,
        [IntervalBand(0.5, [-1.0] * 60, [1.0] * 60), IntervalBand(0.9, [-5.0] * 60, [5.0] * 60)],
        actual,
    )
    assert chart_html(fan).count('class="dot outside"') == 1


def test_a_long_curve_keeps_its_spike():
    values = [0.0] * 20_000
    values[12_345] = 7.0
    times = [(date(1950, 1, 1) + timedelta(days=k)).isoformat() for k in range(20_000)]
    html = chart_html(TimeLines("t", "", times, [Curve("a", values)]))
    heights = [
        float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", re.search(r'line c0" d="([^"]*)"', html)[1])
    ]
    assert min(heights) < 100
    assert len(html) < 120_000


def test_the_envelope_of_evenness_is_the_binomial_one():
    from scipy.stats import binom

    for num, bins in ((200, 10), (2000, 20), (5, 4)):
        low, high = _even_band(bins, num)
        assert low * num == pytest.approx(binom.ppf(0.025, num, 1 / bins))
        assert high * num == pytest.approx(binom.ppf(0.975, num, 1 / bins))


def test_numbers_are_as_precise_as_their_neighbours_need():
    assert [tick.label for tick in ticks(0.97, 1.01, "×", 5)] == ["0.97×", "0.98×", "0.99×", "1.00×", "1.01×"]
    assert [tick.label for tick in ticks(-0.05, 0.1, "%", 4)] == ["−5%", "0%", "5%", "10%"]
    assert number(-0.0001, "", 0.1) == "0.0"
    assert number(1234.5, "bp") == "1,234 bp"
    assert number(NAN) == "–"


@pytest.mark.parametrize(("first", "last"), [
    ("1914-07-01", "2024-01-01"), ("1999-01-01", "2021-03-31"), ("2006-01-01", "2010-01-01"),
    ("2008-01-01", "2008-12-31"), ("2008-09-01", "2008-09-30"), ("2008-09-15", "2008-09-16"),
])  # fmt: skip
def test_a_time_axis_has_a_handful_of_ticks(first, last):
    found = date_ticks(when(first), when(last))
    assert 3 <= len(found) <= 13
    assert all(when(first) <= tick.at <= when(last) for tick in found)


class _Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.loads, self.links, self.ids = [], [], set()

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        if "src" in told or tag in ("link", "img", "iframe"):
            self.loads.append(tag)
        self.links += [told["href"]] if "href" in told else []
        self.ids |= {told["id"]} if "id" in told else set()


def _evaluation(name="demo", **more):
    return Evaluation(
        name=name, title="What <stands>", lead="A & B.", metrics={"crps": 0.98, "unknown": None}, seed=4,
        cards=[Card("0.98", "of a peer's", True)], charts=CHARTS, notes=["few events"],
        rows=[{"model": "fused <1>", "crps": 0.98}, {"model": "peer", "p": np.float64(0.01)}], **more,
    )  # fmt: skip


def test_json_gives_the_evaluation_back_and_one_page_shows_all(tmp_path):
    for name in ("zebra", "returns"):
        write_outputs(_evaluation(name), json_file=tmp_path / f"{name}.json", html_file=None)
    back = read_result(tmp_path / "zebra.json")
    assert (back.name, back.title, back.lead, back.seed, back.kind) == (
        "zebra",
        "What <stands>",
        "A & B.",
        4,
        "eval",
    )
    assert back.cards == [Card("0.98", "of a peer's", True)]
    assert [type(chart) for chart in back.charts] == [type(chart) for chart in CHARTS]
    assert next(one for one in back.charts if one.title == "Heat").values == [[0.1, None]]
    bench = {"name": "ticks", "kind": "bench", "metrics": {"event_p50_us": 1.0}, "rows": []}
    (tmp_path / "ticks.json").write_text(json.dumps(bench))
    page = tmp_path / "all.html"
    done = CliRunner().invoke(
        report_command,
        [*map(str, sorted(tmp_path.glob("*.json"))), "--html", str(page)],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    text = page.read_text()
    outline = _Outline()
    outline.feed(text)
    assert outline.loads == []
    assert {link.removeprefix("#") for link in outline.links} == {"eval-returns", "eval-zebra"} <= outline.ids
    assert text.index('id="eval-returns"') < text.index('id="eval-zebra"')
    assert "What &lt;stands&gt;" in text
    assert "fused &lt;1&gt;" in text
    assert "<stands>" not in text
    assert "benchmarks left out: ticks" in text


def test_what_is_no_evaluation_is_refused_in_one_line(tmp_path):
    for text in ("{", '{"name": 3}', '{"name": "x", "metrics": {}, "charts": [{"type": "pie"}]}', "\xff"):
        (tmp_path / "bad.json").write_text(text, encoding="latin-1")
        with pytest.raises(InvalidInput, match=r"bad\.json: is not the JSON of an evaluation"):
            read_result(tmp_path / "bad.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_result(tmp_path / "absent.json")
    with pytest.raises(DependencyUnavailable, match="cannot be written"):
        write_page(tmp_path / "bad.json" / "page.html", _evaluation())


def test_a_point_without_neighbours_is_a_dot_and_a_line_is_none():
    values = [None] * 40
    values[9] = 1.0
    html = chart_html(TimeLines("t", "", DAYS[:40], [Curve("misses", values), Curve("line", WAVE[:40])]))
    assert html.count('class="dot') == 1

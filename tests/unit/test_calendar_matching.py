"""Which outcome a headline tells, in the words of many wires; and all that looks like a release and is none."""

import pytest

from htfi.domain.events import News
from htfi.narrative.calendar.announcements import Announcement, AnnouncementKind
from htfi.narrative.calendar.prefetching import item_outcome, match_item

FED = Announcement("fomc", AnnouncementKind.RATE, 0, "fed")
ECB = Announcement("ecb", AnnouncementKind.RATE, 0, "ecb")
BOE = Announcement("boe", AnnouncementKind.RATE, 0, "boe")
CPI = Announcement("cpi", AnnouncementKind.CPI, 0, "us", consensus=0.3, basis="mom")
UK_CPI = Announcement("uk-cpi", AnnouncementKind.CPI, 0, "uk", consensus=3.0, basis="yoy")
JOBS = Announcement("jobs", AnnouncementKind.PAYROLLS, 0, "us", consensus=180.0)
GDP = Announcement("gdp", AnnouncementKind.GDP, 0, "us", consensus=2.0, basis="annualised")
APPLE = Announcement("apple", AnnouncementKind.EARNINGS, 0, "Apple", ("AAPL",), consensus=1.35)


def news(headline: str, body: str = "", **of: object) -> News:
    return News(0, 0, "wire", 1, "n", headline, body=body, **of)  # type: ignore[arg-type]


RATES = [
    ("Fed cuts rates by half a point", 5.25, "cut 50"),
    ("FOMC leaves target range unchanged at 5-1/4 to 5-1/2 percent", 5.5, "hold"),
    ("FED CUTS RATES BY 50 BPS TO 4.75%", 5.25, "cut 50"),
    ("UPDATE 2-Fed cuts benchmark rate by a quarter point, cites weak housing", None, "cut 25"),
    ("Federal Reserve raises interest rates by 75 basis points", None, "raise 75"),
    ("Fed hikes rates three-quarters of a percentage point, most since 1994", None, "raise 75"),
    ("Fed lifts target range to 5.25%-5.50%", 5.25, "raise 25"),
    ("Fed lowers fed funds rate to 4-3/4 percent", 5.25, "cut 50"),
    ("Fed slashes key interest rate by 3/4 point; stocks rally", None, "cut 75"),
    ("Fed holds rates steady, signals no rush to ease", None, "hold"),
    ("Fed stands pat, drops reference to further firming", None, "hold"),
    ("Fed keeps rates near zero, extends bond purchases", 0.25, "hold"),
    ("U.S. central bank leaves borrowing costs unchanged", None, "hold"),
    ("Fed delivers half-point cut to kick off easing", None, "cut 50"),
    ("Fed announces quarter-point rate hike", None, "raise 25"),
    ("Fed votes 9-1 to cut rates by 25 basis points", None, "cut 25"),
    ("Fed sets target rate between 0 and 0.25%, lowest ever", 1.0, "cut 75"),
    ("Fed unexpectedly cuts rates by 50 bp as growth falters", None, "cut 50"),
    ("Divided Fed cuts rates by 25 bp; two members dissent", None, "cut 25"),
    ("Fed sees slower growth, cuts rates by 25 bp", None, "cut 25"),
    ("Fed cuts rates ½ point", None, "cut 50"),
    ("Rates left unchanged by Fed", None, "hold"),
    ("Fed cuts rates by 25 bp, as expected", None, "cut 25"),
    ("Fed makes no change to its target rate", None, "hold"),
    ("Fed cuts rates 25 bp, may cut again in December", None, "cut 25"),
    ("BREAKING: Fed raises rates by 0.25 percentage points", None, "raise 25"),
    ("Federal Reserve holds interest rates at 22-year high", None, "hold"),
    ("*FED CUTS RATES 25 BPS TO 4.25%-4.5% TARGET RANGE", 4.75, "cut 25"),
    ("FED HOLDS BENCHMARK RATE IN 5.25%-5.5% TARGET RANGE", 5.5, "hold"),
    ("Fed cuts rates for the first time in four years with half-point move", None, "cut 50"),
    ("Fed signals pause after raising rates by quarter point", None, None),
    # what looks like a decision and is none, or does not tell which
    ("Fed considers cutting rates by half a point", None, None),
    ("Fed expected to cut rates by 25 basis points", None, None),
    ("Fed to cut rates by 50 bp, Goldman says", None, None),
    ("Fed may cut rates by half a point", None, None),
    ("Fed seen holding rates steady as economy slows", None, None),
    ("Fed likely to leave rates unchanged at 5.25%", None, None),
    ("Will the Fed cut rates by 50 basis points?", None, None),
    ("Fed cuts discount rate by 50 bp to 5.75%", 5.25, None),
    ("Fed raises its dollar swap lines to $620 billion", None, None),
    ("Fed cuts growth forecast to 2 percent", None, None),
    ("Fed does not cut rates by 50 bp", None, None),
    ("Fed refrains from cutting rates", None, None),
    ("Fed minutes show split over cutting rates by 50 bp", None, None),
    ("Fed's Kashkari wants rates cut by half a point", None, None),
    ("Stocks soar after Fed cuts rates by half a point", None, None),
    ("ECB cuts rates by 25 basis points", None, None),
    ("Fed cuts rates", None, None),
    ("Fed keeps rate cut on the table", None, None),
    ("Fed leaves door open to rate cut", None, None),
    ("Fed raises rate on reserves by 25 bp", None, None),
    ("Fed to keep hawkish tone, hold rates steady", None, None),
    ("Poll: Fed cuts rates by 25 bp in September", None, None),
    ("A year ago the Fed cut rates by half a point", None, None),
    ("Fed cuts rates by 50 bp to 5.00%", 5.25, None),
    ("Fed leaves rates unchanged at 5.00%", 5.25, None),
    ("Banks cut prime rate to 4 pct after Fed acts", None, None),
    ("Fed cuts rates in emergency move by 75 bp", None, None),
    ("Traders bet Fed cuts rates by 50 bp", None, None),
    ("If Fed cuts rates by half a point, dollar will fall", None, None),
    ("Fed cuts rates by 25 to 50 bp in coming months, analyst predicts", None, None),
    ("China cuts rates by 25 basis points", None, None),
    ("Fed raises mortgage rates fears", None, None),
    ("Fed leaves rate outlook unchanged", None, None),
    ("Fed cuts rates by 50 bp in 2008, history shows", None, None),
    ("PREVIEW-Fed leaves rates unchanged", None, None),
]


@pytest.mark.parametrize(("headline", "level", "key"), RATES)
def test_rate_decisions_are_told_apart_from_talk_of_them(
    headline: str, level: float | None, key: str | None
) -> None:
    assert item_outcome(news(headline), FED, level).key == key


@pytest.mark.parametrize(
    ("release", "headline", "key"),
    [
        (ECB, "ECB raises rates by 50 basis points", "raise 50"),
        (ECB, "European Central Bank keeps interest rates on hold", "hold"),
        (ECB, "Fed cuts rates by half a point", None),
        (BOE, "Bank of England holds Bank Rate at 5.25%", "hold"),
        (BOE, "BoE's MPC votes to cut rates by a quarter point", "cut 25"),
        (BOE, "Bank of Canada cuts rates by a quarter point", None),
    ],
)
def test_each_bank_is_told_by_its_own_names(release: Announcement, headline: str, key: str | None) -> None:
    assert item_outcome(news(headline), release, None).key == key


def test_a_banks_statement_is_read_where_the_headline_does_not_tell() -> None:
    body = (
        "The Federal Open Market Committee decided today to lower its target for the federal funds rate 50 basis "
        "points to 4-3/4 percent. Economic growth was moderate during the first half of the year."
    )
    assert item_outcome(news("FOMC statement", body), FED, 5.25).key == "cut 50"
    assert (
        item_outcome(news("FOMC statement", body), FED, 5.5).key is None
    )  # then 4-3/4 would be another step
    assert item_outcome(news("Fed's Fisher gives a speech", body), FED, 5.25).key is None
    hold = "The Committee decided to maintain the target range for the federal funds rate at 5-1/4 to 5-1/2 percent."
    assert item_outcome(news("Federal Reserve issues FOMC statement", hold), FED, 5.5).key == "hold"


def test_the_lead_gives_the_size_that_a_headline_leaves_out() -> None:
    lead = (
        "WASHINGTON (Reuters) - The Federal Reserve on Tuesday cut interest rates by half a percentage point."
    )
    assert item_outcome(news("Fed cuts rates to aid growth", lead), FED, None).key == "cut 50"
    assert item_outcome(news("Fed raises rates to curb prices", lead), FED, None).key is None


DATA = [
    (CPI, "U.S. consumer prices rise 0.4% in May, more than expected", "above"),
    (CPI, "U.S. consumer prices rise 0.6 percent in May", "far above"),
    (CPI, "US CPI +0.3% vs +0.3% expected", "in line"),
    (CPI, "U.S. CPI rises 0.1% m/m vs 0.3% est", "far below"),
    (CPI, "U.S. consumer prices unexpectedly fall 0.1 percent", "far below"),
    (CPI, "U.S. consumer prices unchanged in May", "far below"),
    (CPI, "U.S. inflation hotter than expected in May", "above"),
    (CPI, "U.S. consumer prices rise less than forecast", "below"),
    (CPI, "U.S. consumer prices rise 0.3 percent in May, as expected", "in line"),
    (CPI, "US inflation comes in far above forecasts", "far above"),
    (CPI, "U.S. core consumer prices rise 0.4%, more than expected", None),
    (CPI, "U.S. producer prices rise 0.4%, more than expected", None),
    (CPI, "UK consumer prices rise 0.4% in May, more than expected", None),
    (CPI, "Consumer prices rise 0.4% in May, more than expected", None),
    (CPI, "U.S. consumer prices seen rising 0.4% in May", None),
    (CPI, "U.S. consumer prices expected to rise 0.4%", None),
    (CPI, "U.S. inflation expectations rise more than expected", None),
    (CPI, "U.S. consumer prices rise 0.4%, less than expected", None),
    (CPI, "U.S. annual inflation rate slows to 3.2 percent", None),
    (CPI, "U.S. consumer prices rise 3.2% from a year earlier", None),
    (CPI, "U.S. consumer prices rise 0.4% vs 0.4% expected", None),
    (CPI, "U.S. consumer prices may rise more than expected", None),
    (CPI, "Wall Street falls after U.S. consumer prices rise more than expected", None),
    (UK_CPI, "UK inflation slows to 2.8%, more than expected", "far below"),
    (UK_CPI, "British inflation rises to 3.1 percent, above forecasts", "above"),
    (JOBS, "U.S. adds 209,000 jobs in July, more than expected", "above"),
    (JOBS, "Nonfarm payrolls rise 187,000 in August", "in line"),
    (JOBS, "U.S. nonfarm payrolls +263K vs +180K expected", "far above"),
    (JOBS, "U.S. economy loses 63,000 jobs in February", "far below"),
    (JOBS, "U.S. job growth slows to 75,000 in May, below forecasts", "far below"),
    (JOBS, "U.S. payrolls fall less than expected", "above"),
    (JOBS, "U.S. payrolls fall more than expected", "below"),
    (JOBS, "U.S. employers add 336,000 jobs, nearly double forecasts", None),
    (JOBS, "U.S. private payrolls rise 209,000, ADP says", None),
    (JOBS, "U.S. weekly jobless claims fall more than expected", None),
    (JOBS, "Canada adds 209,000 jobs, more than expected", None),
    (JOBS, "U.S. unemployment rate falls to 3.5%", None),
    (JOBS, "U.S. to add 209,000 jobs in July, economists say", None),
    (GDP, "U.S. economy grew 2.4% in second quarter, faster than expected", "above"),
    (GDP, "U.S. GDP rises at 3.3% annual rate in fourth quarter", "far above"),
    (GDP, "U.S. economy shrinks 0.7 percent in first quarter", "far below"),
    (GDP, "U.S. economic growth slows to 1.6%, below estimates", "below"),
    (GDP, "U.S. second-quarter GDP growth revised to 2.1%", None),
    (GDP, "Fed sees U.S. economy growing 2.4%", None),
    (JOBS, "U.S. economy grows slightly better than expected", None),
    (JOBS, "US adds just 12,000 jobs in October, far fewer than expected", "far below"),
    (JOBS, "Nonfarm payrolls increased by 254K in September, much better than expected", "above"),
    (JOBS, "US job growth totaled 175,000 in April, much less than expected", None),
    (GDP, "U.S. economy to grow 2.4% this year", None),
]  # fmt: skip


@pytest.mark.parametrize(("release", "headline", "key"), DATA)
def test_figures_are_told_by_their_own_measure_and_region(
    release: Announcement, headline: str, key: str | None
) -> None:
    assert item_outcome(news(headline), release, None).key == key


RESULTS = [
    ("Apple tops estimates, raises outlook", "beat, raised"),
    ("Apple beats profit estimates", "beat, kept"),
    ("Apple Q3 profit misses estimates", "miss, kept"),
    ("Apple quarterly earnings fall short of forecasts; cuts full-year outlook", "miss, cut"),
    ("Apple meets expectations, reaffirms guidance", "in line, kept"),
    ("Apple profit jumps 20%, beating Wall Street expectations", "beat, kept"),
    ("Apple (AAPL) Q3 EPS $1.40 vs. $1.35 est.", "beat, kept"),
    ("Apple Q3 EPS $1.29 vs. $1.35 expected", "miss, kept"),
    ("Apple Inc posts better-than-expected results, lifts full-year forecast", "beat, raised"),
    ("Apple loss narrower than expected", "beat, kept"),
    ("Apple's profit falls less than expected", "beat, kept"),
    ("AAPL Q2 earnings beat estimates, lowers guidance", "beat, cut"),
    ("Apple expected to beat estimates", None),
    ("Apple to beat estimates, analysts say", None),
    ("Apple shares rise after results top estimates", None),
    ("Apple supplier Foxconn beats estimates", None),
    ("Samsung tops estimates, raises outlook", None),
    ("Apple beats Samsung in patent case", None),
    ("Apple beats estimates but outlook disappoints", None),
    ("Apple profit beats, revenue misses estimates", None),
    ("Apple revenue tops estimates", None),
    ("Apple profit rises 20 percent", None),
    ("Apple beats estimates, warns on next quarter", None),
    ("Apple cuts price of iPhone", None),
    ("Can Apple top estimates?", None),
    ("Apple misses no chance to top estimates", None),
    ("Goldman raises Apple estimates", None),
    ("Apple 2027 results to fall short of expectations", None),
    ("Apple posts lower-than-expected revenue", None),
    ("Apple's 2027 forecast meets Street view", None),
    ("Apple beats on top and bottom lines", "beat, kept"),
    ("Apple misses on earnings and revenue", "miss, kept"),
    ("Apple Q4 EPS $1.64 Beats $1.60 Estimate", "beat, kept"),
    ("Apple stock jumps on earnings beat", None),
    ("Apple beats view, lowers 2027 earnings range", "beat, cut"),
    ("Apple profit beats Street; 2027 in line with goals", "beat, kept"),
    ("Apple profit rises, forecast beats Wall Street view", None),
]


@pytest.mark.parametrize(("headline", "key"), RESULTS)
def test_results_are_told_with_their_outlook(headline: str, key: str | None) -> None:
    assert item_outcome(news(headline), APPLE, None).key == key


def test_an_item_that_could_be_two_releases_is_none() -> None:
    twin = Announcement("fomc-again", AnnouncementKind.RATE, 0, "fed")
    assert match_item(news("Fed cuts rates by 25 bp"), (FED, twin), {}) is None
    found = match_item(news("Fed cuts rates by 25 bp"), (FED, ECB), {})
    assert found is not None
    assert (found.release.id, found.key) == ("fomc", "cut 25")


@pytest.mark.parametrize("of", [{"corrects": "x"}, {"retracts": True}, {"released_by": "someone"}])
def test_what_corrects_takes_back_or_comes_from_quarantine_tells_no_release(of: dict[str, object]) -> None:
    assert match_item(news("Fed cuts rates by 25 bp", **of), (FED,), {}) is None


def test_only_the_publishers_that_are_named_may_tell_a_release() -> None:
    strict = Announcement("fomc", AnnouncementKind.RATE, 0, "fed", publishers=("Federal Reserve", "wire"))
    assert match_item(news("Fed cuts rates by 25 bp"), (strict,), {}) is not None
    other = News(0, 0, "blog", 1, "n", "Fed cuts rates by 25 bp", publisher="pump.example")
    assert match_item(other, (strict,), {}) is None


def test_an_item_on_another_symbol_is_not_this_companys() -> None:
    assert match_item(news("Apple tops estimates", symbols=("MSFT",)), (APPLE,), {}) is None
    assert match_item(news("Apple tops estimates", symbols=("AAPL",)), (APPLE,), {}) is not None

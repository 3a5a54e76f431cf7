"""What the sanitiser makes of items beside each other: told again, altered, forged, concerted, misdated, corrected."""

from collections.abc import Callable

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.publishers import Publisher, PublisherRegistry, host_of
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.sanitising.sources import SourceBelief

S = 1_000_000_000
HOUR = 3_600 * S
START = 1_700_000_000 * S
LEAD = "Acme Inc said on Monday that third-quarter profit rose 12 percent on strong demand for its anvils in Asia."

Tell = Callable[..., ScreenedItem]


def belief(sanitiser: Sanitiser, source: str) -> SourceBelief:
    return sanitiser._sources.belief(source, sanitiser._now_ns)


@pytest.fixture
def sanitiser() -> Sanitiser:
    return Sanitiser()


@pytest.fixture
def tell(sanitiser: Sanitiser) -> Tell:
    number = 0

    def say(
        headline: str,
        source: str = "feed",
        after_s: float = 0.0,
        symbols: tuple[str, ...] = ("ACME",),
        **more: object,
    ) -> ScreenedItem:
        nonlocal number
        number += 1
        at_ns = START + round(after_s * S)
        told = {"body": "", "event_time_ns": at_ns, "id": f"i{number}"} | more
        return sanitiser.screen(
            News(available_at_ns=at_ns, source=source, row=number, headline=headline, symbols=symbols, **told)  # type: ignore[arg-type]
        )

    return say


def rules(screened: ScreenedItem) -> set[str]:
    return {finding.rule for finding in screened.findings}


def test_clean_item_of_an_unknown_source_counts_in_full(tell: Tell):
    screened = tell("Acme opens a plant in Leeds")
    assert (screened.verdict, screened.trust, screened.findings) == (Screening.PASS, 1.0, ())
    assert screened.cluster == screened.item.id
    assert len(screened.digest) == 32


@pytest.mark.parametrize(
    ("again", "is_same"),
    [
        ("Acme profit rises 12 percent", True),
        ("ACME profit rises 12 percent!", True),
        ("UPDATE 2-Acme profit rises 12 percent", True),
        ("Acme profit rises 72 percent", False),
        ("Acme profit falls 12 percent", False),
        ("Acme profit does not rise 12 percent", False),
        ("CORRECTED-Acme profit rises 12 percent", False),
        ("Acme profit rises 12 percent, cuts 900 jobs", False),
    ],
)
def test_same_story_is_told_again_only_without_new_figures_or_another_sense(
    tell: Tell, again: str, is_same: bool
):
    first = tell("Acme profit rises 12 percent", "reuters", body=LEAD)
    second = tell(again, "reuters", 600, body=LEAD)
    assert (second.cluster == first.item.id) is is_same
    assert second.num_alike == (2 if is_same else 1)
    assert second.verdict is Screening.PASS


def test_headlines_that_differ_in_the_name_are_different_stories(tell: Tell):
    tell("Ford to cut 1,000 jobs in Europe", symbols=())
    other = tell("Opel to cut 1,000 jobs in Europe", symbols=())
    assert other.cluster == other.item.id


def test_story_in_a_script_without_spaces_is_found_again(tell: Tell):
    first = tell("贵州茅台三季度净利润同比增长百分之十二超出市场预期", symbols=())
    second = tell("快讯 贵州茅台三季度净利润同比增长百分之十二超出市场预期", symbols=())
    assert second.cluster == first.item.id


def test_story_is_forgotten_after_the_window(tell: Tell):
    tell("Acme opens a plant in Leeds with royal guests")
    later = tell("Acme opens a plant in Leeds with royal guests", after_s=4 * 86_400)
    assert later.cluster == later.item.id
    assert later.num_alike == 1


def test_first_who_can_be_believed_is_kept_not_a_forger_who_was_earlier(tell: Tell):
    forged = tell("Acme to buy Beta for 5 billion dollars", publisher="Reuteгs")
    true = tell("Acme to buy Beta for 5 billion dollars", "reuters", 60)
    assert forged.verdict is Screening.QUARANTINE
    assert true.cluster == true.item.id
    assert true.trust == 1.0


def test_copy_with_an_altered_figure_of_a_better_source_counts_for_less(tell: Tell, sanitiser: Sanitiser):
    tell("Acme profit rises 12 percent", "reuters", body=LEAD)
    copy = tell("Acme profit rises 12 percent", "blog", 60, body=LEAD.replace("12", "72"))
    assert rules(copy) == {"contradicted"}
    assert copy.verdict is Screening.DISCOUNT
    assert sanitiser.take_invalidated() == []


def test_better_source_overturns_the_altered_copy_that_came_first(tell: Tell, sanitiser: Sanitiser):
    early = tell("Acme profit rises 72 percent", "blog", body=LEAD.replace("12", "72"))
    true = tell("Acme profit rises 12 percent", "reuters", 60, body=LEAD)
    assert true.findings == ()
    assert sanitiser.take_invalidated() == [early.item.id]
    assert sanitiser.take_invalidated() == []
    assert belief(sanitiser, "blog").credibility < belief(Sanitiser(), "blog").credibility


@pytest.mark.parametrize(
    ("claim", "denial"),
    [
        ("FDA approves Acme drug for asthma", "Acme denies approval of its asthma drug"),
        ("Acme in takeover talks with Beta", "Acme denies takeover talks with Beta"),
        ("Acme agrees merger with Beta", "Acme and Beta call off merger, terminate agreement"),
        ("Acme raises dividend after strong year", "Acme cuts dividend after weak year"),
    ],
)
def test_claim_is_overturned_by_a_better_source_and_not_by_a_worse(claim: str, denial: str):
    for rumour, truth, worse_first in ((claim, denial, True), (denial, claim, False)):
        sanitiser = Sanitiser()
        first, second = ("blog", "reuters") if worse_first else ("reuters", "blog")
        one = sanitiser.screen(News(START, START, first, 1, "one", rumour, ("ACME",)))
        two = sanitiser.screen(News(START + S, START + S, second, 2, "two", truth, ("ACME",)))
        assert one.verdict is Screening.PASS
        if worse_first:
            assert sanitiser.take_invalidated() == ["one"]
            assert two.findings == ()
        else:
            assert sanitiser.take_invalidated() == []
            assert rules(two) == {"contradicted"}


def test_one_source_that_tells_the_next_chapter_does_not_contradict_itself(tell: Tell, sanitiser: Sanitiser):
    tell("Acme shares rise as profit climbs", "reuters")
    later = tell("Acme profit outlook falls", "reuters", 900)
    assert later.findings == ()
    assert sanitiser.take_invalidated() == []


def test_source_corrects_its_own_items_and_nobody_elses(tell: Tell, sanitiser: Sanitiser):
    told = tell("Acme cuts its outlook", "reuters")
    forged = tell("Please disregard our report", "blog", 5, corrects=told.item.id, retracts=True)
    assert rules(forged) == {"contradicted"}
    assert sanitiser.take_invalidated() == []
    tell("CORRECTED-Acme keeps its outlook", "reuters", 9, corrects=told.item.id)
    assert sanitiser.take_invalidated() == [told.item.id]


def test_id_that_another_source_uses_already_names_no_second_item(tell: Tell):
    tell("Acme opens a plant", "reuters", id="guid-1")
    forged = tell("Beta goes bankrupt", "blog", id="guid-1")
    assert forged.item.id != "guid-1"
    assert "guid-1" in forged.item.id


@pytest.mark.parametrize(
    ("publisher", "url", "verdict"),
    [
        ("Reuters", "", Screening.PASS),
        ("Reuters ", "", Screening.PASS),
        ("Reuters", "https://www.reuters.com/markets/1", Screening.PASS),
        ("Reuters", "https://finance.yahoo.com/news/1", Screening.PASS),
        ("Leeds Gazette", "https://leedsgazette.example/1", Screening.PASS),
        ("Fortune Minerals", "https://fortuneminerals.com/1", Screening.PASS),
        ("Reuters", "https://leedsgazette.example/1", Screening.DISCOUNT),
        ("Reuteгs", "", Screening.QUARANTINE),
        ("Bloornberg", "", Screening.QUARANTINE),
        ("Reuterz", "", Screening.QUARANTINE),
        ("R\u200beuters", "", Screening.QUARANTINE),
        ("Reuters", "https://x.com/reuters_breaking/1", Screening.QUARANTINE),
        ("Reuters", "https://reuters-news.co/1", Screening.QUARANTINE),
        ("", "https://reuters.com.markets.example/1", Screening.QUARANTINE),
        ("", "https://reuters.com@markets.example/1", Screening.QUARANTINE),
        ("", "https://bloomberq.com/1", Screening.QUARANTINE),
        ("", "https://xn--bloomberg-news-qhk.com/1", Screening.QUARANTINE),
    ],
)
def test_publisher_and_link_must_fit_together(tell: Tell, publisher: str, url: str, verdict: Screening):
    screened = tell("Acme opens a plant in Leeds", publisher=publisher, url=url)
    assert screened.verdict is verdict
    assert verdict is Screening.PASS or "impersonation" in rules(screened)


def test_post_with_a_wires_dateline_is_held_back_and_the_wires_own_is_not(tell: Tell):
    text = "NEW YORK (Reuters) - Acme Inc said it would buy Beta Corp."
    assert tell("Acme to buy Beta", "telegram", body=text).verdict is Screening.QUARANTINE
    assert tell("Acme to buy Gamma", "reuters", body=text).findings == ()
    assert tell("Acme to buy Delta", "vendor", body=text).verdict is Screening.PASS


def test_forger_neither_spends_nor_spoils_the_credit_of_whom_it_imitates(tell: Tell, sanitiser: Sanitiser):
    before = belief(sanitiser, "reuters")
    for place in range(5):
        tell(f"Forged story number {place} about Acme", publisher="Reuters", url="https://reuters-news.co/1")
    assert belief(sanitiser, "reuters") == before
    assert sanitiser.current_credibility("feed") < 0.6


def test_persons_own_publishers_and_kinds_count():
    own = Publisher("Leeds Wire", "wire", ("leedswire.example",))
    sanitiser = Sanitiser(SanitiserConfig(publishers=(own,), source_kinds=(("chat", "social"),)))
    item = News(START, START, "feed", 1, "a", "Acme opens a plant", publisher="Leeds Wlre")
    assert sanitiser.screen(item).verdict is Screening.QUARANTINE
    post = News(START, START, "chat", 2, "b", "LEEDS (Leeds Wire) - Acme opens a plant")
    assert sanitiser.screen(post).verdict is Screening.QUARANTINE
    with pytest.raises(InvalidInput, match="domain"):
        Publisher("X", "wire", ("https://x.com/",))
    with pytest.raises(InvalidInput, match="kinds"):
        SanitiserConfig(source_kinds=(("chat", "gossip"),))


def test_host_of_a_link_is_where_it_leads():
    assert host_of("HTTPS://www.Reuters.com:443/a?b#c") == "reuters.com"
    assert host_of("https://reuters.com@evil.example/") == "reuters.com@evil.example"
    assert host_of("//evil.example\\@reuters.com") == "evil.example"
    assert host_of("nonsense") == host_of("") == host_of("https://[::1") == ""
    assert PublisherRegistry().imitates("xn--\udc80.com") is None


def test_voices_that_say_the_same_within_minutes_are_held_back_and_those_before_them_forgotten(
    tell: Tell, sanitiser: Sanitiser
):
    told = [tell(f"Acme will go wild tomorrow morning{'!' * n}", f"user{n}", 20 * n) for n in range(8)]
    assert [one.verdict for one in told[:2]] == [Screening.PASS] * 2
    assert told[2].verdict is Screening.DISCOUNT
    assert told[-1].verdict is Screening.QUARANTINE
    assert {one.item.id for one in told[:4]} <= set(sanitiser.take_invalidated())
    assert {trouble.rule for trouble in sanitiser.take_incidents()} == {"burst"}


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:05}")


def test_same_story_in_feeds_that_are_known_for_days_is_no_burst(tell: Tell):
    feeds = [f"paper{n}" for n in range(8)]
    for day in range(3):
        for number in range(10):
            for feed in feeds:
                place = 1_000 * feeds.index(feed) + 100 * day + 6 * number
                told_of = " ".join(_word(at) for at in range(place, place + 6))
                tell(told_of, feed, 86_400 * day + 600 * number, ())
    told = [tell("Acme to build a plant in Leeds", feed, 3 * 86_400 + 20 * n) for n, feed in enumerate(feeds)]
    assert all(one.verdict is Screening.PASS for one in told)


def test_story_that_a_good_source_tells_too_is_no_burst(tell: Tell):
    tell("Acme wins a large contract in Spain", "reuters")
    told = [tell("Acme wins a large contract in Spain", f"user{n}", 20 + 20 * n) for n in range(8)]
    assert all(one.verdict is Screening.PASS and one.cluster == "i1" for one in told)


def test_voices_that_say_the_same_over_days_are_no_burst(tell: Tell):
    told = [tell("Acme opens its annual meeting today", f"user{n}", 7_200 * n) for n in range(8)]
    assert all("burst" not in rules(one) for one in told)


def test_many_voices_that_all_push_one_way_are_a_burst_though_their_words_differ(tell: Tell):
    words = "Acme soars|Huge gains at Acme|Acme jumps again|Analysts see Acme rise|Acme rallies hard|Bulls: Acme climbs"
    more = "|Strong Acme beats all|Acme boosted|Acme up up up|Acme surges more|Upgrades lift Acme higher"
    told = [tell(one, f"user{n}", 20 * n) for n, one in enumerate((words + more).split("|"))]
    assert told[4].verdict is Screening.PASS
    assert told[5].verdict is Screening.DISCOUNT
    assert told[-1].verdict is Screening.QUARANTINE


def test_feed_that_writes_by_a_pattern_repeats_nothing(tell: Tell):
    firms = ("Acme", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta", "Theta")
    told = [
        tell(f"{name} sees third-quarter profit of {n} pct", "vendor", n, ()) for n, name in enumerate(firms)
    ]
    assert all(one.findings == () for one in told)


def test_same_voice_that_says_it_again_and_again_counts_for_less(tell: Tell):
    told = [tell(f"Acme secret deal announced very soon {n}", "blog", 20 * n) for n in range(8)]
    assert told[-1].verdict is Screening.DISCOUNT
    assert "repetition" in rules(told[-1])


@pytest.mark.parametrize(
    ("headline", "dated_s", "finds"),
    [
        ("Acme opens a plant", -60, False),
        ("Acme opens a plant", 60, False),
        ("Acme opens a plant", 7_200, True),
        ("Breaking: Acme opens a plant", -86_400, True),
        ("Acme opens a plant", -5 * 86_400, True),
    ],
)
def test_item_dated_far_from_its_arrival_is_told(tell: Tell, headline: str, dated_s: int, finds: bool):
    screened = tell(headline, event_time_ns=START + dated_s * S)
    assert rules(screened) == ({"instant"} if finds else set())


def test_source_that_is_always_late_is_not_blamed_for_it(tell: Tell):
    late = [
        tell(f"Filing {n} of a company", "archive", 60 * n, (), event_time_ns=START - 20 * HOUR)
        for n in range(60)
    ]
    assert "instant" in rules(late[0])
    assert "instant" not in rules(late[-1])


def test_item_dated_before_a_move_that_it_came_after_is_told(tell: Tell, sanitiser: Sanitiser):
    for n in range(60):
        tell(
            f"Something small number {n} of many", "feed", 60 * n, (), event_time_ns=START + (60 * n - 5) * S
        )
    sanitiser.observe_return("ACME", START + 7_000 * S, 4.0)
    honest = tell("Acme soars after results", "feed", 7_060, event_time_ns=START + 7_050 * S)
    wise = tell("Acme to soar on new contract", "feed", 14_000, event_time_ns=START + 6_900 * S)
    assert honest.findings == ()
    assert rules(wise) == {"instant"}


def test_released_item_passes_and_its_source_is_cleared(tell: Tell, sanitiser: Sanitiser):
    held = tell("Acme to buy Beta", publisher="Reuteгs", id="x")
    current_credibility = sanitiser.current_credibility("feed")
    free = tell("Acme to buy Beta", publisher="Reuteгs", id="x", after_s=60, released_by="Ann Lee: checked")
    assert held.verdict is Screening.QUARANTINE
    assert (free.verdict, free.trust, free.item.id, free.cluster) == (Screening.PASS, 1.0, "x", "x")
    assert any(one.rule == "released" and "Ann Lee" in one.detail for one in free.findings)
    assert sanitiser.current_credibility("feed") >= current_credibility

"""A body is read where its item may concern a series of the run, and held until there is one."""

import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.narrative import unread_bodies
from htfi.narrative.facts.regions import is_economy
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.unread_bodies import UnreadBodies
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.news import build_news_processor
from htfi.wiring.settings import Settings
from ibm_news import BODY

RESULTS = "IBM reports quarterly results"
HOUR_NS = 3_600_000_000_000


def item(number: int, headline: str, *symbols: str) -> News:
    return News(
        number * HOUR_NS, number * HOUR_NS, "wire", number, f"n{number}", headline, symbols, body=BODY
    )


def num_passages(processor: NewsProcessor, name: str) -> int:
    body = processor.records([name])[name].facts.body
    return 0 if body is None else body.num_passages


def test_a_body_is_read_when_the_run_has_a_series_of_its_symbol() -> None:
    early, late = build_news_processor(Settings()), build_news_processor(Settings())
    early.select("IBM", 0)
    for one in (early, late):
        one.receive(item(1, RESULTS, "IBM"))
    assert num_passages(late, "n1") == 0
    late.select("MSFT", 2 * HOUR_NS)
    assert num_passages(late, "n1") == 0
    assert late.select("IBM", 2 * HOUR_NS) == early.select("IBM", 2 * HOUR_NS)
    assert num_passages(late, "n1") == num_passages(early, "n1") > 0
    assert late.records(["n1"]) == early.records(["n1"])


def test_a_restart_between_an_item_and_its_series_changes_nothing() -> None:
    through, restarted = build_news_processor(Settings()), build_news_processor(Settings())
    through.receive(item(1, RESULTS, "IBM"))
    restarted.restore(decode_state(encode_state(through.state())))
    assert restarted.select("IBM", 2 * HOUR_NS) == through.select("IBM", 2 * HOUR_NS)
    assert num_passages(restarted, "n1") == num_passages(through, "n1") > 0
    assert restarted.state()["unread"] == through.state()["unread"] == []


def test_the_body_of_a_withdrawn_item_is_held_no_longer() -> None:
    made = build_news_processor(Settings())
    made.receive(item(1, RESULTS, "IBM"))
    assert [name for name, _ in made.state()["unread"]] == ["n1"]
    made.receive(replace(item(2, "Withdrawn: IBM results", "IBM"), body="", corrects="n1", retracts=True))
    assert made.state()["unread"] == []


@pytest.mark.parametrize(
    ("series", "headline", "is_read"),
    [
        ("SPX", "Apple raises its dividend", False),
        ("SPX", "Fed raises rates by 25 basis points", True),
        ("IBM", "Apple raises its dividend as IBM cuts its own", True),
        ("IBM", "Vandelay Industries warns that its profit will fall", False),
        ("ZZQV", "Vandelay Industries warns that its profit will fall", True),
        ("IBM", "U.S. charges 13 in insider trading, bribery cases", True),
    ],
)
def test_news_without_symbols_is_read_unless_it_is_of_other_companies(
    series: str, headline: str, is_read: bool
) -> None:
    made = build_news_processor(Settings())
    made.select(series, 0)
    body = "Apple said that it would pay 20 cents a share, 10% more than it did a year before, in cash."
    made.receive(replace(item(1, headline), body=body))
    assert (num_passages(made, "n1") > 0) is is_read
    assert bool(made.state()["unread"]) is not is_read


@pytest.mark.parametrize(
    ("name", "is_one"), [("U.S.", True), ("Beijing", True), ("U.S. Steel", False), ("Apple", False)]
)
def test_an_economy_is_no_firm(name: str, is_one: bool) -> None:
    assert is_economy(name) is is_one


def test_of_too_many_bodies_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_bodies, "MAX_UNREAD_CHARS", 100)
    held = UnreadBodies()
    for number in range(5):
        held.hold(f"n{number}", "x" * 40)
    held.hold("n3", "y" * 20)
    assert held.items() == {"n4": "x" * 40, "n3": "y" * 20}.items()
    held.drop("n4")
    held.drop("n4")
    held.hold("n5", "z" * 80)
    assert [name for name, _ in held.state()] == ["n3", "n5"]
    held.hold("n6", "z" * 101)
    assert len(held) == 0

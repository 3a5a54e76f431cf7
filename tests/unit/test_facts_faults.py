"""Texts that state nothing, whatever their words; names that are words or go on as another firm's; older records."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from htfi.domain.errors import IntegrityError
from htfi.domain.events import News
from htfi.domain.news import Screening
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.scorer import NewsScorer
from htfi.narrative.facts.extraction import extract_facts
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.naming import find_name, has_symbol_as_word
from htfi.narrative.facts.reading import Silence, read_for
from htfi.narrative.facts.record import FACTS_VERSION, TextFault
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.recent_news import NewsRecord
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.suspicion import SuspicionMonitor

LINKER = EntityLinker({})
MINUTE_NS = 60 * 10**9


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", TextFault.EMPTY),
        ("BRIEF-", TextFault.EMPTY),
        ("Fed raises rates by", TextFault.CUT),
        ("OPEC+ agrees to", TextFault.CUT),
        ("Acme profit rises to $1.2 bln from $1.5 bln", TextFault.CONTRADICTORY),
        ("Unemployment falls to 4.3% from 4.1%", TextFault.CONTRADICTORY),
        ("Acme posts a profit of $2.1 bln, a loss of $2.1 bln", TextFault.CONTRADICTORY),
        ("Acme EPS $1.20, above the $1.35 consensus", TextFault.CONTRADICTORY),
        ("Shares of Acme jump 12% to close lower", TextFault.CONTRADICTORY),
        ("WITHDRAWN: our earlier alert on Acme", TextFault.WITHDRAWN),
        ("Please disregard the headline on Acme, it was sent in error", TextFault.WITHDRAWN),
        ("Forecasting system halts after an error", TextFault.OURSELVES),
        ("Our model gives a 63% probability that stocks rise", TextFault.OURSELVES),
        ("Acme profit rises to $1.5 bln from $1.2 bln", TextFault.NONE),
        ("Acme loss widens to $1.5 bln from $1.2 bln", TextFault.NONE),
        ("Unemployment falls to 4.1% from 4.3%", TextFault.NONE),
        ("Acme EPS $1.20, above the $1.10 consensus", TextFault.NONE),
        ("Acme swings to a profit of $2.1 bln from a loss of $1.1 bln", TextFault.NONE),
        ("Acme withdraws its full-year guidance", TextFault.NONE),
        ("Acme wins contract for a weather forecasting system", TextFault.NONE),
        ("Tesla recalls 100,000 of our Model 3 cars, says Musk", TextFault.NONE),
        ("日銀、政策金利を据え置き", TextFault.NONE),
    ],
)
def test_fault_of_a_text(text: str, fault: TextFault) -> None:
    facts = extract_facts(text, None, LINKER)
    assert facts.fault is fault
    silence = read_for(facts, "ACME", "Acme").silence
    if fault is TextFault.NONE:
        assert silence.value not in {one.value for one in TextFault if one is not TextFault.NONE}
    else:
        assert silence is Silence(fault.value)


@pytest.mark.parametrize(
    ("text", "symbol", "name", "is_named"),
    [
        ("Delta Electronics profit plunges", "DAL", "Delta Air Lines", False),
        ("Delta cuts its outlook", "DAL", "Delta Air Lines", True),
        ("Delta Electronics falls, Delta rises", "DAL", "Delta Air Lines", True),
        ("Apple Hospitality cuts dividend", "AAPL", "Apple", False),
        ("Acme Steel cuts dividend", "ACME", "Acme Steel", True),
        ("ALL BANKS CUT DIVIDENDS", "ALL", "Allstate", False),
        ("Buy NOW, says analyst", "NOW", "ServiceNow", False),
        ("ServiceNow (NOW) raises outlook", "NOW", "", True),
        ("$NOW raises outlook", "NOW", "", True),
        ("ACME raises outlook", "ACME", "", True),
    ],
)
def test_who_is_named(text: str, symbol: str, name: str, is_named: bool) -> None:
    assert (find_name(text, symbol, name) is not None) == is_named


def test_symbol_that_is_a_word_of_the_text_is_no_tag() -> None:
    assert has_symbol_as_word("It misses estimates", "IT")
    assert not has_symbol_as_word("Its profit falls", "IT")
    assert not has_symbol_as_word("Acme misses estimates", "ACME")


def item(minute: int, headline: str, source: str = "wire", **more: Any) -> News:
    return News(
        minute * MINUTE_NS, minute * MINUTE_NS, source, minute, f"n{minute}", headline, ("ACME",), **more
    )


WRONG = "Acme quarterly profit falls 50% to $1 billion, below expectations"
CORRECTED = "CORRECTED-Acme quarterly profit rises 50% to $3 billion, above expectations"


def test_text_that_says_it_corrects_takes_the_place_of_its_sources_item() -> None:
    sanitiser = Sanitiser()
    sanitiser.screen(item(1, "Acme opens a plant in the north of the country"))
    sanitiser.screen(item(2, WRONG))
    sanitiser.screen(item(3, "Acme names a new head of research after a long search"))
    found = sanitiser.screen(item(4, CORRECTED))
    assert found.verdict is Screening.PASS
    assert sanitiser.take_invalidated() == ["n2"]


def test_another_source_corrects_nothing_by_its_words() -> None:
    sanitiser = Sanitiser()
    sanitiser.screen(item(2, WRONG))
    sanitiser.screen(item(4, CORRECTED, "other"))
    assert sanitiser.take_invalidated() == []


def processor() -> NewsProcessor:
    return NewsProcessor(
        NarrativeConfig(), RoutingConfig(), Sanitiser(), NewsScorer(None, None, LINKER), SuspicionMonitor(),
        facts=FactReader(None, LINKER),
    )  # fmt: skip


def test_older_record_is_read_again_and_an_unknown_one_is_refused() -> None:
    first = processor()
    first.receive(item(1, "Acme profit rises to $1.2 bln from $1.5 bln"))
    state = first.state()
    (note,) = msgspec.msgpack.decode(state["notes"], type=list[NewsRecord])
    assert note.facts is not None
    old = replace(note, facts=replace(note.facts, version="facts/1", fault=TextFault.NONE))
    second = processor()
    second.restore({**state, "notes": msgspec.msgpack.encode([old])})
    (read,) = second.records(["n1"]).values()
    assert read.facts is not None
    assert (read.facts.version, read.facts.fault) == (FACTS_VERSION, TextFault.CONTRADICTORY)
    unknown = state["notes"].replace(b"unknown", b"unknawn")
    assert unknown != state["notes"]
    with pytest.raises(IntegrityError, match="another version of htfi"):
        processor().restore({**state, "notes": unknown})

"""Bodies: a few passages are read with the headline, which counts more; whatever a body's length, a constant number."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import NewsScores, Route, ScreenedItem
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.bodies import MAX_PASSAGES
from htfi.narrative.facts.extraction import FactScores
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.facts.passages.selection import most_relevant
from htfi.narrative.facts.policy.action import PolicyExpectation, PolicyMove
from htfi.narrative.facts.reading import Silence, read_for, reading_record
from htfi.narrative.facts.record import KINDS, ROLES, BodyStance, EventKind, NewsFacts, Tense
from htfi.narrative.facts.surprises import Verdict
from htfi.narrative.processor import MAX_SCORED_TOGETHER, NewsProcessor
from htfi.narrative.routing import max_passages
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.suspicion import SuspicionMonitor

BOILERPLATE = (
    "About the company: Acme makes soaring products. Forward-looking statements involve soaring risk factors."
)


class ByWord:
    """Reads 'soars' as good, 'plunges' as bad, 'last year' as a recap; counts the texts that it read."""

    version = "by-word@1"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, texts: Sequence[str]) -> list[FactScores]:
        self.texts += texts
        return [self._scores(text) for text in texts]

    def _scores(self, text: str) -> FactScores:
        side = 0 if "soar" in text else 2 if "plunge" in text else 1
        kind = EventKind.ROUTINE if "announces" in text else EventKind.EARNINGS
        tense = Tense.RECAP if "last year" in text else Tense.FACT
        num = max(len(text.split()), 1)
        roles = np.zeros((num, len(ROLES) + 1))
        roles[:, -1] = 1.0
        return FactScores(
            event=_sure(len(KINDS), KINDS.index(kind)),
            tone=_sure(3, side),
            axis=_sure(3, side),
            modality=_sure(5, 0),
            tense=_sure(3, list(Tense).index(tense)),
            spans=np.zeros((num, 2), np.int64),
            roles=roles,
            effects=np.tile(_sure(3, 1), (num, 1)),
        )


def _sure(num: int, place: int) -> np.ndarray:
    shares = np.full(num, 0.05 / (num - 1))
    shares[place] = 0.95
    return shares


def read(text: str, body: str, network: ByWord | None = None) -> NewsFacts:
    return FactReader(network or ByWord(), EntityLinker({})).read([text], [body])[0]


def stance(facts: NewsFacts) -> BodyStance:
    assert facts.body is not None
    return facts.body.stance


def test_body_that_agrees_is_said_and_changes_no_side() -> None:
    found = read("Acme profit soars", "Net profit soars to $2 billion. Sales figures were higher too.")
    assert stance(found) is BodyStance.AGREES
    assert found.tone > 0.7


def test_body_that_disagrees_lowers_confidence_and_is_said() -> None:
    alone = read_for(read("Acme profit soars", ""), "ACME", "Acme")
    facts = read("Acme profit soars", "In truth profit plunges by half. Revenue plunges by a third as well.")
    found = read_for(facts, "ACME", "Acme")
    assert stance(facts) is BodyStance.DISAGREES
    assert found.direction == 1
    assert found.confidence < alone.confidence - 0.15
    assert found.size_sigmas < alone.size_sigmas
    record = reading_record(facts, found)
    assert (record.num_passages, record.body, record.facts) == (2, "disagrees", "facts/2")


def test_weak_headline_against_its_body_is_silence_with_that_reason() -> None:
    facts = read("Acme profit soars", "Profit plunges by half. Revenue plunges by a third as well.")
    assert stance(facts) is BodyStance.DISAGREES
    found = read_for(replace(facts, tone=0.1, neutral=0.4), "ACME", "Acme")
    assert (found.direction, found.silence) == (0, Silence.BODY_DISAGREES)


@pytest.mark.parametrize(
    "body",
    [
        "A year ago profit plunges were reported last year. Profit plunges of last year hit sales.",
        f"{BOILERPLATE.replace('soaring', 'plunges')}",
    ],
)
def test_recaps_and_boilerplate_count_for_nothing(body: str) -> None:
    assert read("Acme profit soars", body).tone == read("Acme profit soars", "").tone


def test_vague_headline_takes_kind_and_side_of_its_body() -> None:
    facts = read("Acme announces third quarter results", "Net profit plunges 40% to $12 million.")
    assert (facts.event, stance(facts)) == (EventKind.EARNINGS, BodyStance.ADDS)
    assert read_for(facts, "ACME", "Acme").direction == -1


def test_figures_that_a_body_contradicts_have_no_verdict() -> None:
    headline = "Acme EPS $1.20, above consensus of $1.10"
    assert [one.verdict for one in read(headline, "").surprises] == [Verdict.ABOVE]
    facts = read(
        headline, "Acme earned 95 cents a share in the quarter, below the $1.10 that analysts expected."
    )
    assert [one.verdict for one in facts.surprises] == [Verdict.UNCLEAR]
    assert stance(facts) is BodyStance.DISAGREES


def test_table_in_a_body_gives_the_comparison_that_the_headline_lacks() -> None:
    facts = read("US payrolls rise in July", "Payrolls: 187K (expected 170K, previous 105K).")
    assert [(one.measure, one.verdict) for one in facts.surprises] == [("payrolls", Verdict.ABOVE)]
    facts = read(
        "US payrolls rise 187,000 in July", "Economists polled by us had expected an increase of 270,000."
    )
    assert [(one.measure, one.verdict) for one in facts.surprises] == [("payrolls", Verdict.BELOW)]


@pytest.mark.parametrize("num_chars", [3_000, 200_000])
def test_document_of_any_length_costs_a_constant_number_of_passes(num_chars: int) -> None:
    network = ByWord()
    words = [
        "".join(chr(97 + (number >> shift) % 16) for shift in (0, 4, 8)) for number in range(num_chars // 40)
    ]
    body = " ".join(
        f"Sales of {word} soar {word}ly by {place}% at {word}er." for place, word in enumerate(words)
    )
    assert len(body) >= num_chars * 0.9
    read("Acme sales soar", body, network)
    assert len(network.texts) == 1 + MAX_PASSAGES


def test_what_was_read_of_late_is_not_read_again_and_batches_change_nothing() -> None:
    network = ByWord()
    reader = FactReader(network, EntityLinker({}))
    body = "Net profit soars to $2 billion. Orders plunge at the plant in the north."
    one = reader.read(["Acme profit soars", "Bolt profit plunges"], [body, body])
    num_read = len(network.texts)
    assert num_read == 4
    assert reader.read(["Bolt profit plunges"], [body]) == one[1:]
    assert len(network.texts) == num_read


HOLD = (
    "The Committee decided to keep the target range for the federal funds rate at 0 to 1/4 percent and expects it will "
    "be appropriate to maintain this target range until inflation has risen to 2 percent and is on track to moderately "
    "exceed 2 percent for some time."
)


def test_what_a_bank_expects_of_the_economy_makes_no_surprise_of_its_hold() -> None:
    facts = read("Federal Reserve issues FOMC statement", HOLD)
    assert facts.action is not None
    assert (facts.action.move, facts.action.expected) == (PolicyMove.HOLD, None)
    assert facts.action.expectation is PolicyExpectation.UNKNOWN
    assert facts.surprises == ()
    assert read_for(facts, "SPX").direction == 0
    surprising = read("Fed holds rates, economists had expected a cut", "")
    assert surprising.action is not None
    assert surprising.action.expectation is PolicyExpectation.SURPRISE


def test_passages_leave_out_what_repeats_the_headline() -> None:
    body = "Acme profit soars. Acme profit soars in the third quarter as orders from Asia double. Acme profit soars!"
    found = most_relevant(body, "Acme profit soars", (), 4)
    assert [one.text for one in found] == [
        "Acme profit soars in the third quarter as orders from Asia double."
    ]
    assert most_relevant("", "Acme", (), 4) == most_relevant(body, "Acme", (), 0) == ()


def test_budget_of_passages_follows_route_and_deadline() -> None:
    assert [max_passages(route, 250.0) for route in (Route.TEMPLATE, Route.ENCODER, Route.TARGET)] == [
        0,
        2,
        4,
    ]
    assert [max_passages(Route.TARGET, deadline) for deadline in (1.0, 40.0, 3.6e6)] == [0, 1, 4]


class Relevant:
    """Scores football as irrelevant."""

    version = "by-word@1"

    def score(self, items: Sequence[ScreenedItem]) -> list[NewsScores]:
        return [
            NewsScores(
                0.0, 0.0, "", 0.0, 0.1 if "football" in one.item.headline else 0.9, 1.0, encoder=self.version
            )
            for one in items
        ]

    def state(self) -> dict[str, object]:
        return {}

    def restore(self, state: dict[str, object]) -> None:
        pass


def test_run_reads_no_body_of_what_it_sets_aside() -> None:
    network = ByWord()
    made = NewsProcessor(
        NarrativeConfig(), RoutingConfig(), Sanitiser(), Relevant(), SuspicionMonitor(),
        facts=FactReader(network, EntityLinker({})),
    )  # fmt: skip
    body = "Net profit soars to $2 billion in the quarter. Orders from Asia double to 500 units."
    made.receive(
        News(
            1,
            1,
            "wire",
            1,
            "a",
            "Rovers win the football cup after extra time",
            body="They scored in the last minute of the game.",
        )
    )
    made.score_pending()
    assert len(network.texts) == 1
    made.receive(News(2, 2, "wire", 2, "b", "Acme reports on its third quarter", ("ACME",), body=body))
    assert len(made.select("ACME", 3).readings) == 2
    assert len(network.texts) == 4


class Begins(ByWord):
    """Notes when texts are begun and when the first of them is waited for; of headlines that end in a number."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def read(self, texts: Sequence[str]) -> Iterator[FactScores]:
        kind = "headlines" if texts[0][-1].isdigit() else "passages"
        self.noted.append(f"begin {kind}")
        return self._waited_for(kind, texts)

    def _waited_for(self, kind: str, texts: Sequence[str]) -> Iterator[FactScores]:
        self.noted.append(f"wait for {kind}")
        yield from super().read(texts)


def test_bodies_of_some_are_read_while_the_next_are_scored_and_change_nothing() -> None:
    network = Begins()

    def processor(of: ByWord) -> NewsProcessor:
        return NewsProcessor(
            NarrativeConfig(), RoutingConfig(), Sanitiser(), Relevant(), SuspicionMonitor(),
            facts=FactReader(of, EntityLinker({})),
        )  # fmt: skip

    def news(k: int) -> News:
        side = ("soars", "plunges")[k % 2]
        body = (
            f"Net profit {side} to ${k} billion in the third quarter. Orders from Asia double to {k} units."
        )
        return News(k, k, "wire", k, f"n{k}", f"Acme reports results of quarter {k}", ("ACME",), body=body)

    items = [news(k) for k in range(1, MAX_SCORED_TOGETHER + 3)]
    together, alone = processor(network), processor(ByWord())
    for one in (together, alone):
        one.select("ACME", 0)
    for item in items:
        together.receive(item)
        alone.receive(item)
        alone.score_pending()
    names = [item.id for item in items]
    assert together.records(names) == alone.records(names)
    of_headlines, begin, wait = (
        ["begin headlines", "wait for headlines"],
        "begin passages",
        "wait for passages",
    )
    assert network.noted == [*of_headlines, begin, *of_headlines, begin, wait, wait]

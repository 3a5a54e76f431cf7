"""The audit follows the record: change it and the words change; nothing from outside escapes its quotes."""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from checks import nonempty
from htfi.domain.decision import (
    BarCircumstances,
    Decision,
    DecisionInputs,
    FidelityPlan,
    Forecast,
    NewsTilt,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    Regime,
    Rung,
)
from htfi.domain.generation import DraftRound
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news import NewsContext, NewsItemAudit, NewsScores, ReadingBudget, Route, Screening
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.audit import (
    MAX_LISTED_ITEMS,
    amendment_lines,
    explain_decision,
    generation_lines,
    reader_in_words,
)
from htfi.narrative.audit_summary import AuditSummary

NOW = 1_221_500_000 * 10**9
HOUR = 3_600 * 10**9
LEVELS = (0.05, 0.5, 0.95)
SCORES = NewsScores(0.62, -0.1, "earnings", 0.71, 0.8, 0.33, ("A",), "minilm@1")


def heard(name: str, **changed: object) -> NewsItemAudit:
    made = NewsItemAudit(
        name, "wire", NOW - HOUR, Screening.PASS, 1.0, (), 1, SCORES, Route.TARGET, "worth 0.26; normal case"
    )
    return replace(made, **changed)


POISON = heard(
    "tip1", source="tips", verdict=Screening.QUARANTINE, trust=0.0, route=Route.TEMPLATE, scores=None,
    reasons=("injection: orders to a model", "burst: 5 alike"), why="in quarantine",
)  # fmt: skip
PARTS = (
    ViewPart("target@7a26", 1.0, 2.0, 1.5, 0.7, ("n1",), NOW, 24 * HOUR, 1.0, is_worded=True),
    ViewPart("encoder@1", -1.0, 1.0, 1.0, 0.4, ("n2",), NOW - 12 * HOUR, 24 * HOUR, 0.5),
)
WORDING = GenerationTrace(
    target="target@7a26", draft="draft@d0d0", strategy="chain", seed=1, temperature=0.0, num_items=1, prompt=(1,),
    tokens=(5, 6, 9, 8, 7),
    rounds=(DraftRound((5, 6, 7), (), (0, 1), 9), DraftRound((8,), (), (0,), 7)),
)  # fmt: skip
VIEW = NewsView(
    1.0, 1.5, 1.4, 0.75, ("n1", "n2"), NOW, 24 * HOUR, words="{symbol} is lifted", reader="target@7a26, with encoder@1",
    trace=WORDING, parts=PARTS,
)  # fmt: skip
TILT = NewsTilt(VIEW.reader, [0.01, 0.01], [1.2, 1.1], [0.5, 0.25], 0.61, 0.973)
HEARING = NewsContext((heard("n1"), heard("n2", route=Route.ENCODER)), (POISON,), ReadingBudget(80.0, 80.0))
DECISION = Decision(
    id="A/1d@x", symbol="A", interval="1d", as_of_ns=NOW, last_price=100.0, inputs=DecisionInputs("d", 1, {}),
    settings_digest="s", models={}, plan=FidelityPlan(Rung.SPECULATIVE, "normal case", 80.0), regime=Regime.NORMAL,
    features={},
    forecast=Forecast((1, 5), LEVELS, [[-0.1, 0.0, 0.1]] * 2, {}, {}, [1.0, 1.0], TILT), view=VIEW,
    rationale=Rationale("", "", {}, [], []), circumstances=BarCircumstances(0, 1, None, 0.0),
    verdict=PolicyVerdict(PolicyOutcome.RELEASE, []), news_context=HEARING,
)  # fmt: skip


def words(decision: Decision, title: str) -> str:
    (found,) = [section for section in explain_decision(decision) if section.title == title]
    return "\n".join(found.lines)


def test_what_was_read_tells_verdict_scores_reader_and_reason() -> None:
    told = words(DECISION, "What was read")
    assert "“n1” from “wire”, 60 minutes earlier: passed" in told
    assert "sentiment +0.62, stance -0.10, earnings 71%, relevance 0.80, novelty 0.33" in told
    assert "read by the target model, reason: worth 0.26; normal case" in told
    assert "read by the encoder" in told


def test_what_was_set_aside_tells_every_reason() -> None:
    told = words(DECISION, "What was set aside")
    assert "“tip1” from “tips”" in told
    assert "held in quarantine (injection: orders to a model, burst: 5 alike)" in told


def test_parts_are_told_with_their_share_of_the_weight_and_contradictions_are_kept() -> None:
    told = words(DECISION, "What moved it")
    # weights: 1·0.7·1 and 0.5·0.4·2^−½
    assert "83% of the weight: target on “n1”" in told
    assert "17% of the weight: encoder on “n2”" in told
    assert "trust 50%" in told
    against = words(DECISION, "Contradictions kept")
    assert (
        "target on “n1”: up by 2 standard deviations. encoder on “n2”: down by 1 standard deviation. Both are kept."
        in against
    )


def test_change_and_divergence_are_the_tilts() -> None:
    told = words(DECISION, "What it changed")
    assert (
        "1 bar ahead: with a weight of 50%, the median moves by +0.50% and the band is 1.10 times as wide"
        in told
    )
    assert "5 bars ahead: with a weight of 25%, the median moves by +0.25%" in told
    assert "Divergence 0.61: more than in 97%" in told


def test_where_draft_and_target_differ_is_told_by_round_in_tokens_or_in_words() -> None:
    told = words(DECISION, "Draft and target")
    assert "target confirmed all 5 tokens" in told
    assert "draft drafted 4 tokens, of which 3 were accepted (75%)" in told
    assert "Round 1: the draft wrote #7, the target #9" in told
    assert "Round 2" not in told
    spelt = generation_lines(WORDING, {7: "up", 9: "down"}.__getitem__)
    assert "Round 1: the draft wrote “up”, the target “down”." in spelt


def test_of_a_tree_all_guesses_for_the_place_that_fell_are_told() -> None:
    tree = replace(WORDING, rounds=(DraftRound((5, 6, 7, 8), (-1, 0, 0, 2), (0,), 9),))
    assert "Round 1: the draft wrote #6 or #7, the target #9." in generation_lines(tree, None)


def test_an_amendment_tells_the_view_before_and_where_the_tokens_part() -> None:
    first = replace(DECISION, view=replace(VIEW, direction=-1.0, trace=replace(WORDING, tokens=(5, 6, 4))))
    told = "\n".join(amendment_lines(first, replace(DECISION, amends=first.id), None))
    assert "Before: down by 1.5 standard deviations" in told
    assert "Now: up by 1.5 standard deviations" in told
    assert "differ from token 3 on: #4 before, #9 #8 #7 now" in told


def test_suspicion_and_its_end_are_told() -> None:
    news_context = replace(
        HEARING, suspicion="symbol A suspected since then: pump 3", reset_by="everything cleared by Ann"
    )
    told = words(replace(DECISION, news_context=news_context), "Suspicion")
    assert "Suspected: symbol A suspected since then: pump 3" in told
    assert "Ended recently: everything cleared by Ann" in told
    assert "None." in words(DECISION, "Suspicion")


@dataclass(frozen=True)
class Change:
    name: str
    decision: Decision


def _heard(**changed: object) -> Decision:
    return replace(
        DECISION, news_context=replace(HEARING, considered=(replace(HEARING.considered[0], **changed),))
    )


def _aside(**changed: object) -> Decision:
    return replace(DECISION, news_context=replace(HEARING, set_aside=(replace(POISON, **changed),)))


def _viewed(**changed: object) -> Decision:
    return replace(DECISION, view=replace(VIEW, **changed))


def _tilted(**changed: object) -> Decision:
    return replace(DECISION, forecast=replace(DECISION.forecast, tilt=replace(TILT, **changed)))


CHANGES = [
    Change("verdict", _heard(verdict=Screening.DISCOUNT, trust=0.4)),
    Change("age", _heard(available_at_ns=NOW - 3 * HOUR)),
    Change("sentiment", _heard(scores=replace(SCORES, sentiment=-0.62))),
    Change("route", _heard(route=Route.DRAFT)),
    Change("why", _heard(why="worth 0.9")),
    Change("alike", _heard(num_alike=7)),
    Change("told before", _heard(first_report="n0")),
    Change("reason", _aside(reasons=("pump: promises",))),
    Change("source", _aside(source="elsewhere")),
    Change("direction", _viewed(direction=-1.0)),
    Change("confidence", _viewed(confidence=0.5)),
    Change("words", _viewed(words="{symbol} is hurt")),
    Change("cited", _viewed(cited=("n1",))),
    Change("trust of a part", _viewed(parts=(PARTS[0], replace(PARTS[1], trust=0.9)))),
    Change("way of a part", _viewed(parts=(PARTS[0], replace(PARTS[1], direction=1.0)))),
    Change("weight", _tilted(weight=[0.6, 0.25])),
    Change("shift", _tilted(shift=[0.02, 0.01])),
    Change("stretch", _tilted(stretch=[1.4, 1.1])),
    Change("divergence", _tilted(divergence=0.5)),
    Change("rank", _tilted(divergence_rank=0.5)),
    Change("tokens", _viewed(trace=replace(WORDING, rounds=WORDING.rounds[1:]))),
    Change("drafter", _viewed(trace=replace(WORDING, draft="other@1"))),
    Change("settled", _viewed(trace=replace(WORDING, num_verified=2))),
    Change("rung", replace(DECISION, plan=FidelityPlan(Rung.EDGE, "normal case", 80.0))),
    Change("reason of the plan", replace(DECISION, plan=FidelityPlan(Rung.SPECULATIVE, "high load", 80.0))),
    Change("suspicion", replace(DECISION, news_context=replace(HEARING, suspicion="all news suspected"))),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_words_change_with_the_record(change: Change) -> None:
    assert explain_decision(change.decision) != explain_decision(DECISION)


def test_hostile_text_stays_one_line_in_its_quotes_and_hides_nothing() -> None:
    evil = "x”\n\x1b[31m\u202egnp\u200b [bold]"
    news_context = replace(
        HEARING, considered=(heard(evil, source=evil, reasons=(evil,), why=evil),), suspicion=evil
    )
    view = replace(
        VIEW, words=evil, reader=evil, cited=(evil,), parts=(replace(PARTS[0], reader=evil, cited=(evil,)),)
    )
    for section in nonempty(explain_decision(replace(DECISION, news_context=news_context, view=view))):
        for line in nonempty(section.lines):
            assert line.isprintable(), line
            assert "\u202e" not in line
            assert "\u200b" not in line


def test_many_items_are_told_by_number() -> None:
    many = tuple(heard(f"n{k}") for k in range(MAX_LISTED_ITEMS + 5))
    assert "And 5 more." in words(
        replace(DECISION, news_context=replace(HEARING, considered=many)), "What was read"
    )


def test_without_news_and_without_a_view_it_says_so() -> None:
    bare = replace(DECISION, news_context=None, view=None, forecast=replace(DECISION.forecast, tilt=None))
    told = {section.title: section.lines for section in explain_decision(bare)}
    assert told["What was read"] == ("There was no news.",)
    assert "What the view says" not in told


def test_a_summary_counts_items_once_and_tells_reasons_sources_and_suspicion() -> None:
    suspected = replace(DECISION, id="A/1d@y", news_context=replace(HEARING, suspicion="symbol A suspected"))
    sections = AuditSummary.of(
        [DECISION, suspected, replace(DECISION, id="z", amends=DECISION.id)]
    ).sections()
    told = {section.title: "\n".join(section.lines) for section in sections}
    assert "3 decisions, 2 of them with news, 1 amendment." in told["Decisions"]
    assert (
        "3 items when first considered: 1 read by the target model, 1 read by the encoder"
        in told["What was read"]
    )
    assert "1 in quarantine, 0 discounted, 0 repeated earlier items" in told["What was set aside"]
    assert "By reason: injection 1, burst 1" in told["What was set aside"]
    assert "By source: “tips” 1" in told["What was set aside"]
    assert "1 decision was made in secure mode" in told["Suspicion"]
    assert "12 tokens drafted, 9 accepted, 75%" in told["Draft and target"]


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        ("mini@d7d586dafc64", "mini"),
        ("mini@d7d586dafc64, then draft@48d2d06d8abf", "mini, then draft"),
        ("mini@d7d586dafc64, with 16 answers of mini@d7d586dafc64", "mini, with 16 answers of mini"),
        ("", "a reader"),
    ],
)
def test_every_reader_of_a_merged_view_is_named_without_digests(reader, words):
    assert reader_in_words(reader) == words

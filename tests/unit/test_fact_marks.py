"""Facts in a prompt: marks for our own models, words for others, nothing for a vocabulary that has no marks."""

import msgspec
import pytest
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.generation import ControlToken, PlainText, PromptDialect, ScaledMoves
from htfi.domain.generation_trace import PromptItem
from htfi.domain.news import ItemReading
from htfi.narrative.answer import MARKS
from htfi.narrative.fact_marks import FACT_MARKS, MIN_KIND, fact_words, is_item_mark, marks_of
from htfi.narrative.facts.reading import Silence
from htfi.narrative.facts.record import EventKind, Modality, Tense
from htfi.narrative.question import Question, build_prompt, facts_of, question_id, shown_record

DAY_NS = 86_400 * 10**9
STATED = ItemReading(
    event="earnings", event_confidence=0.9, modality="rumour", tense="fact", role="subject", relevance=0.9,
    score=-0.8, direction=-1, size_sigmas=1.5, volatility=2.0, confidence=0.9, silence="", lines=(1,),
    effects="effects/1", facts="facts/1", reader="network@1",
)  # fmt: skip
SILENT = replace(
    STATED, direction=0, size_sigmas=0.0, silence=Silence.RECAP.value, tense="recap", modality="did",
    relevance=0.2, score=0.3,
)  # fmt: skip
ITEMS = (
    News(9 * DAY_NS, 9 * DAY_NS, "wire", 2, "new", "IBM misses", ("IBM",)),
    News(8 * DAY_NS, 8 * DAY_NS, "wire", 1, "old", "Stocks fell", ()),
    News(7 * DAY_NS, 7 * DAY_NS, "wire", 1, "oldest", "Rain", ()),
)
QUESTION = Question("IBM", 9 * DAY_NS, DAY_NS, ITEMS, (0.5,), "Big Blue")
TOLD = replace(QUESTION, facts=facts_of(ITEMS, {"new": STATED, "old": SILENT, "gone": STATED}))


def controls(*names: str) -> list[ControlToken]:
    return [ControlToken(name) for name in names]


def test_the_names_and_ids_of_marks_never_change() -> None:
    """Models are trained with them and ledgers hold them: a change is a new version with new names."""
    assert len(FACT_MARKS) == len(set(FACT_MARKS)) == 90
    assert not set(FACT_MARKS) & set(MARKS)
    assert [FACT_MARKS[place] for place in (0, 58, 59, 63, 65, 69, 73, 77, 85, 87, 89)] == [
        "e_earnings", "e_unknown", "m_will", "t_expected", "rise0", "fall0", "sure0", "q_unrelated", "lean_up",
        "near0", "near2",
    ]  # fmt: skip


def test_a_reading_is_told_in_steps() -> None:
    assert marks_of(STATED) == ("e_earnings", "m_rumour", "fall3", "sure2", "near2")
    assert marks_of(SILENT) == ("e_earnings", "t_recap", "q_recap", "lean_up", "near0")
    assert marks_of(None) == ()
    assert marks_of(replace(STATED, event_confidence=MIN_KIND - 0.01))[0] == "e_unknown"
    up = replace(STATED, direction=1, score=0.9, size_sigmas=0.1, relevance=0.3)
    assert marks_of(up)[2:] == ("rise0", "sure3", "near1")
    assert marks_of(replace(SILENT, score=-0.1)) == ("e_earnings", "t_recap", "q_recap", "near0")


@pytest.mark.parametrize("change", ["earned", "volatility", "lines", "reader", "facts"])
def test_what_no_model_is_shown_changes_no_mark(change: str) -> None:
    other = {"earned": 0.4, "volatility": 9.0, "lines": (7,), "reader": "another", "facts": "facts/2"}
    assert marks_of(replace(STATED, **{change: other[change]})) == marks_of(STATED)


def test_every_kind_and_every_silence_has_a_mark_and_words() -> None:
    for kind in EventKind:
        assert marks_of(replace(STATED, event=kind.value))[0] == f"e_{kind}"
    reasons = set[str]()
    for silence in Silence:
        if silence is not Silence.NONE:
            (mark,) = (m for m in marks_of(replace(SILENT, silence=silence.value)) if m.startswith("q_"))
            reasons.add(mark)
            # a reason that is newer than the models is told as not understood
            assert silence.value in fact_words((mark,)) or mark == "q_unclear"
    assert len(reasons) == 8
    for modality in Modality:
        told = [m for m in marks_of(replace(STATED, modality=modality.value)) if m.startswith("m_")]
        assert told == ([] if modality is Modality.DID else [f"m_{modality}"])
    for tense in Tense:
        told = [m for m in marks_of(replace(STATED, tense=tense.value)) if m.startswith("t_")]
        assert told == ([] if tense is Tense.FACT else [f"t_{tense}"])


def test_a_record_of_another_version_gives_the_marks_that_are_known() -> None:
    other = replace(SILENT, event="moon_landing", modality="sworn", tense="future", silence="too long ago")
    assert marks_of(other) == ("e_unknown", "q_unclear", "lean_up", "near0")


def test_our_models_get_marks_in_the_news_and_beside_the_ages() -> None:
    prompt, shared = build_prompt(TOLD, PromptDialect.MINI_FACTS)
    assert prompt == (
        *controls("s", "news", "h1", "on"), PlainText(" IBM"), *controls("says", "e_earnings", "m_rumour"),
        PlainText(" IBM misses"), *controls("h2", "wide", "e_earnings", "t_recap"), PlainText(" Stocks fell"),
        *controls("h3", "wide"), PlainText(" Rain"), *controls("/news", "asset"), PlainText(" IBM, Big Blue"),
        *controls("ages", "a0", "h1", "fall3", "sure2", "near2"),
        *controls("a1", "h2", "q_recap", "lean_up", "near0", "a2", "prices"), ScaledMoves((0.5,)),
    )  # fmt: skip
    turned = replace(STATED, direction=1, score=0.9)
    other = replace(TOLD, symbol="HPQ", facts=facts_of(ITEMS, {"new": turned, "old": SILENT}))
    assert build_prompt(other, PromptDialect.MINI_FACTS)[0][:shared] == prompt[:shared]


def test_a_vocabulary_without_marks_gets_the_prompt_without_facts() -> None:
    for dialect in (PromptDialect.MINI, PromptDialect.MINI_FACTS):
        assert build_prompt(QUESTION, dialect) == build_prompt(TOLD, PromptDialect.MINI)


def test_models_from_elsewhere_get_words() -> None:
    plain = "".join(
        part.text for part in build_prompt(TOLD, PromptDialect.PLAIN)[0] if isinstance(part, PlainText)
    )
    assert plain.endswith(
        "\n\nSymbol: IBM (Big Blue)\nAge of the news in bars: [1] 0.0; [2] 1.0; [3] 2.0\n"
        "What was found in the news for this symbol:\n"
        "[1] earnings, rumour; states down very strongly, evidence good, concerns it fully\n"
        "[2] earnings, recap of something old; states nothing (reports an old move), leans up, concerns it little"
        "\nLast moves, oldest first, in units of usual volatility:\n\n"
    )
    without = build_prompt(QUESTION, PromptDialect.PLAIN)[0]
    assert not any("found in the news" in part.text for part in without if isinstance(part, PlainText))


def test_a_question_without_facts_keeps_its_name() -> None:
    assert question_id(QUESTION) == "641b6d78a4f2aa9c16dc190a80608edf"  # as before there were facts
    assert question_id(replace(QUESTION, facts={"elsewhere": ("e_war",)})) == question_id(QUESTION)
    names = {question_id(QUESTION), question_id(TOLD)}
    names.add(question_id(replace(TOLD, facts=facts_of(ITEMS, {"new": STATED, "old": STATED}))))
    names.add(question_id(replace(TOLD, facts=facts_of(ITEMS, {"new": STATED}))))
    assert len(names) == 4
    earned = facts_of(ITEMS, {"new": replace(STATED, earned=0.7), "old": SILENT})
    assert question_id(replace(TOLD, facts=earned)) == question_id(TOLD)


def test_what_was_shown_is_recorded() -> None:
    for dialect in (PromptDialect.MINI_FACTS, PromptDialect.PLAIN):
        first, second, third = shown_record(TOLD, dialect)
        assert (first.facts, second.facts) == (marks_of(STATED), marks_of(SILENT))
        assert third == PromptItem("oldest", 7 * DAY_NS, (), "Rain")
    assert shown_record(TOLD, PromptDialect.MINI) == shown_record(QUESTION, PromptDialect.MINI_FACTS)
    assert b"facts" not in msgspec.json.encode(shown_record(TOLD, PromptDialect.MINI))


def test_item_marks_and_asset_marks_are_apart() -> None:
    assert [mark for mark in marks_of(STATED) if is_item_mark(mark)] == ["e_earnings", "m_rumour"]
    assert sum(map(is_item_mark, FACT_MARKS)) == 65

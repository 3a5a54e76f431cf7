"""What changed between two statements: the action, the votes, sentences and words; and the store of the last ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from htfi.narrative.facts.policy.votes import Dissent, Preference
from htfi.narrative.facts.statements.alignment import Pair, RunKind, WordRun, align_sentences, word_runs
from htfi.narrative.facts.statements.comparison import (
    ChangeKind,
    StatementComparison,
    compare_statements,
    describe_comparison,
)
from htfi.narrative.facts.statements.store import (
    MAX_DOCUMENT_CHARS,
    MAX_DOCUMENTS,
    DocumentKind,
    DocumentSeries,
    StatementStore,
    StoredDocument,
    document_series,
)

TEXTS = Path(__file__).parents[1] / "data/fomc"
JULY, SEPTEMBER, NOVEMBER = (
    (TEXTS / f"2024-{day}.txt").read_text(encoding="utf-8") for day in ("07-31", "09-18", "11-07")
)
FED = DocumentSeries("fed", DocumentKind.STATEMENT)


def rebuilt(found: StatementComparison, gone: RunKind) -> list[str]:
    """The sentences of one side, from the runs alone."""
    lines = [" ".join(run.text for run in change.runs if run.kind is not gone) for change in found.changes]
    return [line for line in lines if line]


def test_words_that_stay_come_and_go():
    assert word_runs("Growth is moderate, and slow.", "Growth is solid and slow") == (
        WordRun(RunKind.SAME, "Growth is"),
        WordRun(RunKind.REMOVED, "moderate,"),
        WordRun(RunKind.ADDED, "solid"),
        WordRun(RunKind.SAME, "and slow"),
    )
    assert word_runs("3‑1/2 percent", "3-1/2 percent.") == (WordRun(RunKind.SAME, "3-1/2 percent."),)
    assert word_runs("", "new") == (WordRun(RunKind.ADDED, "new"),)


def test_sentences_are_paired_in_order_and_moved_ones_found():
    old = ["Inflation remains elevated.", "Growth has slowed this year.", "The Committee will be patient."]
    new = ["The Committee will be patient.", "Inflation remains somewhat elevated.", "Labor demand fell."]
    assert align_sentences(old, new) == [Pair(1, None), Pair(2, 0), Pair(0, 1, True), Pair(None, 2)]
    assert align_sentences([], new) == [Pair(None, 0), Pair(None, 1), Pair(None, 2)]
    assert align_sentences(old, []) == [Pair(0, None), Pair(1, None), Pair(2, None)]
    assert align_sentences([], []) == []


def test_points_pair_what_words_alone_do_not():
    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.array(
            [[1.0, 0.0] if "price" in text or "inflation" in text.lower() else [0.0, 1.0] for text in texts],
            np.float32,
        )

    old, new = ["Inflation eased."], ["Jobs grew.", "Rises in consumer prices slowed."]
    assert Pair(0, 1) not in align_sentences(old, new)
    assert Pair(0, 1) in align_sentences(old, new, encode)


def test_cut_after_a_hold_is_the_news_with_its_size_and_dissent():
    found = compare_statements(JULY, SEPTEMBER)
    assert found.bank == "fed"
    assert found.before is not None
    assert (found.before.move, found.before.high) == ("hold", 5.5)
    assert found.now is not None
    assert (found.now.move, found.now.size_bp, found.now.high) == ("cut", 50, 5.0)
    assert found.new_dissents == (Dissent("Michelle W. Bowman", Preference.CUT),)
    assert describe_comparison(found) == [
        "cut by 50 bp to 4.75–5%; before: held at 5.25–5.5%",
        "vote 11–1, against: Michelle W. Bowman (cut); before: unanimous",
        "sentences: 6 changed, 1 added, 3 removed, 6 same",
    ]


def test_size_follows_from_the_levels_where_only_they_are_stated():
    old = "The Committee decided to raise the target range for the federal funds rate to 5 to 5-1/4 percent."
    found = compare_statements(old, old.replace("5 to 5-1/4", "5-1/4 to 5-1/2"))
    assert found.now is not None
    assert (found.now.size_bp, found.now.prior) == (25, 5.25)


@pytest.mark.parametrize(("old", "new"), [(JULY, SEPTEMBER), (SEPTEMBER, NOVEMBER), (NOVEMBER, JULY)])
def test_runs_hold_every_word_of_both_texts(old: str, new: str):
    found = compare_statements(old, new)
    assert rebuilt(found, RunKind.REMOVED) == [change.new for change in found.changes if change.new]
    assert len(rebuilt(found, RunKind.ADDED)) == sum(bool(change.old) for change in found.changes)
    assert 0.0 < found.changed_share < 1.0


def test_same_text_has_no_changes():
    found = compare_statements(JULY, JULY)
    assert {change.kind for change in found.changes} == {ChangeKind.SAME}
    assert (found.changed_share, found.lean, found.new_dissents) == (0.0, 0.0, ())


def test_lean_is_what_the_changed_sentences_gained():
    def stances(texts: Sequence[str]) -> list[float]:
        return [1.0 if "elevated" in text else -1.0 if "weak" in text else 0.0 for text in texts]

    rest = " The Committee decided to keep its target unchanged at 5 percent."
    found = compare_statements(
        "Inflation is elevated today." + rest, "Inflation is weak today." + rest, stances=stances
    )
    assert [change.lean for change in found.changes] == [-2.0, 0.0]
    assert found.lean == -1.0
    assert describe_comparison(found)[-1].endswith("what changed leans dovish (-1.00)")


def test_store_compares_with_the_last_and_continues_from_its_state():
    store = StatementStore()
    assert store.compare(FED, StoredDocument("a", 1, JULY)) is None
    again = StatementStore()
    again.restore(store.state())
    for one in (store, again):
        found = one.compare(FED, StoredDocument("b", 2, SEPTEMBER))
        assert found is not None
        assert found.now is not None
        assert found.now.size_bp == 50
    assert store.state() == again.state()


def test_store_ignores_repeats_and_what_comes_late_and_forgets_what_is_withdrawn():
    store = StatementStore()
    store.compare(FED, StoredDocument("b", 2, SEPTEMBER))
    assert store.compare(FED, StoredDocument("c", 3, SEPTEMBER)) is None
    assert store.compare(FED, StoredDocument("a", 1, JULY)) is None
    last = store.last(FED)
    assert last is not None
    assert last.text == SEPTEMBER
    store.forget(last.item_id)
    assert store.last(FED) is None


def test_store_is_bounded_in_number_and_size():
    store = StatementStore()
    for number in range(MAX_DOCUMENTS + 9):
        series = DocumentSeries("fed", DocumentKind.SPEECH, f"speaker {number}")
        store.compare(series, StoredDocument(str(number), number, "x" * (MAX_DOCUMENT_CHARS + 5)))
    assert len(store.state()) == MAX_DOCUMENTS
    last = store.last(series)
    assert last is not None
    assert len(last.text) == MAX_DOCUMENT_CHARS
    assert store.last(DocumentSeries("fed", DocumentKind.SPEECH, "speaker 0")) is None


def test_series_of_a_document():
    assert document_series("Federal Reserve issues FOMC statement", SEPTEMBER) == FED
    assert document_series("Minutes of the FOMC", SEPTEMBER, is_official=True) == DocumentSeries(
        "fed", DocumentKind.MINUTES
    )
    spoken = document_series("Governor Laurence H. Meyer: The outlook", SEPTEMBER, "fed", is_official=True)
    assert spoken == DocumentSeries("fed", DocumentKind.SPEECH, "laurence h. meyer")


def test_report_on_a_decision_is_no_statement():
    report = (
        "WASHINGTON (Reuters) - The Federal Reserve cut rates by half a point on Wednesday. The Committee decided to "
        "lower the target range to 4.75-5.00 percent, a move that analysts had expected, and investors cheered it all "
        "day."
    )
    assert document_series("Fed cuts rates", report) is None
    assert document_series("Governor Laurence H. Meyer: The outlook", SEPTEMBER, "fed") is None
    assert document_series("Nokia raises outlook", "Nokia raised its outlook. " * 20) is None
    assert document_series("FOMC statement", "Too short.") is None

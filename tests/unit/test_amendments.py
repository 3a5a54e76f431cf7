"""What is said provisionally, what takes its place, and what is kept of both: the reader, the loop, the files."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from htfi.adapters.stores.decision_table import write_parquet
from htfi.adapters.stores.journal_check import LedgerEntries
from htfi.domain.decision import (
    Decision,
    FidelityPlan,
    PolicyOutcome,
    PolicyVerdict,
    Receipt,
    Rung,
    encode_decision,
)
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar, News, TimePassed
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.governance.ledger.merkle import leaf_hash
from htfi.narrative.answer import ConfidenceCalibration
from htfi.narrative.question import Question, question_id
from htfi.narrative.rationale.amendment import differs_only_in_news
from htfi.narrative.readers import ModelReader
from htfi.pipeline.amendments import PendingAmendments, wait_until
from htfi.pipeline.config import PipelineConfig
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.pipeline.record.wording import facts_of, with_words
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.pipeline.view_cache import ReadRequest, ViewCache
from late_network import DRAFT, NUM_TOKENS, LateAuthor, ListOutlet, days, loop_over, written

DAY_NS = NS_PER_DAY
SYMBOLS = ("A", "B")


class MemoryLedger:
    def __init__(self, entries: Sequence[bytes] = ()) -> None:
        self.entries = list(entries)

    @property
    def size(self) -> int:
        return len(self.entries)

    def entry(self, index: int) -> bytes:
        return self.entries[index]

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        start = len(self.entries)
        self.entries += entries
        return [Receipt(start + k, leaf_hash(entry).hex()) for k, entry in enumerate(entries)]

    def tidy(self) -> None: ...

    def close(self) -> None: ...


class Silent(LateAuthor):
    """Settles three tokens of each answer in time, and the rest when the test says so."""

    def __init__(self) -> None:
        super().__init__(0)
        self.due: list[tuple[str, Completion | RequestRefused]] = []

    def _answer(self, request: GenerationRequest) -> Completion:
        target, draft = written(request.id), written(request.id + "draft")
        tokens = target.tokens[:3] + draft.tokens[3:]
        return replace(draft, tokens=tokens, draft=DRAFT, place="edge alone", num_verified=3)

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        due, self.due = self.due, []
        return due

    def answer_all(self) -> None:
        self.due += [(request.id, written(request.id)) for request in self.written]


def question(symbol: str = "A", as_of_ns: int = DAY_NS) -> Question:
    return Question(symbol, as_of_ns, DAY_NS, (News(5, 5, "wire", 1, "n1", "Fed cuts"),))


def decisions(ledger: MemoryLedger) -> list[Decision]:
    return [decode_entry(entry) for entry in ledger.entries]


def started(author: LateAuthor, num_days: int = 30, **pipeline: float) -> tuple[DecisionLoop, MemoryLedger]:
    ledger = MemoryLedger()
    items = days(num_days, SYMBOLS, news_every=4)
    return loop_over(items, author, ledger, ListOutlet(), **{"late_wait_ms": 0.0, **pipeline}), ledger


def test_an_entry_is_the_same_before_and_after_the_rationale_has_its_words() -> None:
    author = LateAuthor(3)
    loop, ledger = started(author, num_days=60)
    stated: list[Decision] = []
    loop.recorder.subscriber = lambda _, decided: stated.append(decided.decision)
    loop.run(lambda: None)
    found = decisions(ledger)
    released = [one for one in found if one.verdict.outcome is not PolicyOutcome.WITHHOLD]
    assert any(one.amends for one in released)
    assert any(one.view is not None and one.view.trace is not None for one in released)
    assert [with_words(one) for one in stated] == released
    assert [encode_entry(one) for one in found] == ledger.entries
    assert all(facts_of(one).whole is None for one in found)
    assert sum(not one.rationale.text for one in stated) > 40


def test_a_provisional_view_names_who_began_it_and_who_finished_it() -> None:
    reader = ModelReader(Silent())
    (view,) = reader.read([question()], 50.0)
    assert view.provisional
    assert view.reader == f"target@7a26, then {DRAFT}"
    assert view.trace is not None
    assert (view.trace.num_verified, view.trace.place) == (3, "edge alone")


def test_where_the_target_settled_nothing_the_draft_alone_has_read() -> None:
    class Gone(Silent):
        def _answer(self, request: GenerationRequest) -> Completion:
            return replace(super()._answer(request), num_verified=0)

    (view,) = ModelReader(Gone()).read([question()], 50.0)
    assert view.reader == DRAFT


def test_what_the_draft_is_sure_of_counts_as_the_drafts() -> None:
    sure, unsure = (
        ConfidenceCalibration(moving=(0.9,) * 7, flat=(0.9,) * 7),
        ConfidenceCalibration(moving=(0.3,) * 7, flat=(0.3,) * 7),
    )
    author = Silent()
    reader = ModelReader(author, trust=sure, draft_trust=unsure)
    (view,) = reader.read([question()], 50.0)
    assert view.confidence == 0.3
    author.answer_all()
    ((_, late),) = reader.take_late_views()
    assert isinstance(late, NewsView)
    assert late.confidence == 0.9


def test_late_answers_are_views_of_their_own_question_and_told_once() -> None:
    author = Silent()
    reader = ModelReader(author)
    asked = [question("A"), question("B")]
    reader.read(asked, 50.0)
    author.answer_all()
    author.answer_all()
    author.due.append(("nobody's", written("x")))
    told = dict(reader.take_late_views())
    assert list(told) == [question_id(one) for one in asked]
    for name, view in told.items():
        assert isinstance(view, NewsView)
        assert not view.provisional
        assert view.reader == author.version
        assert view.as_of_ns == DAY_NS
        assert view.trace is not None
        assert view.trace.tokens == written(name).tokens
    assert reader.take_late_views() == []


def test_an_answer_that_is_late_and_not_whole_is_none() -> None:
    author = Silent()
    reader = ModelReader(author)
    reader.read([question()], 50.0)
    (request,) = author.written
    author.due.append((request.id, author._answer(request)))
    ((_, told),) = reader.take_late_views()
    assert isinstance(told, RequestRefused)


def test_an_author_that_is_never_late_is_not_asked_for_what_is() -> None:
    class Prompt:
        version, dialect, speculation_stats = LateAuthor.version, LateAuthor.dialect, None

        def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
            return [written(request.id) for request in requests]

    reader = ModelReader(Prompt())
    reader.request_views([question()])
    reader.read([question()], 50.0)
    assert reader.take_late_views() == []


def test_what_is_pursued_comes_later_as_if_it_had_been_asked() -> None:
    author = LateAuthor(0)
    reader = ModelReader(author)
    reader.request_views([question()])
    told: list[tuple[str, NewsView | RequestRefused]] = []
    for _ in range(8):
        told += reader.take_late_views()
    ((name, view),) = told
    assert name == question_id(question())
    assert isinstance(view, NewsView)
    assert view.cited == ("n1",)


def test_a_late_view_takes_the_place_of_the_kept_one_of_its_instant_alone() -> None:
    author = Silent()
    readings = ViewCache({Rung.SPECULATIVE: ModelReader(author)}, 8)
    plan = FidelityPlan(Rung.SPECULATIVE, "", 50.0)
    (first,) = readings.read([ReadRequest("A/1d", question(), plan)])
    assert first is not None
    target = replace(first, provisional=False, reader="target", words="late")
    readings.store_amended("A/1d", question(), Rung.SPECULATIVE, replace(target, as_of_ns=DAY_NS - 1))
    readings.store_amended("B/1d", question(), Rung.SPECULATIVE, target)
    (kept,) = readings.read([ReadRequest("A/1d", question(as_of_ns=2 * DAY_NS), plan)])
    assert kept == replace(first, trace=None)
    readings.store_amended("A/1d", question(), Rung.SPECULATIVE, target)
    (kept,) = readings.read([ReadRequest("A/1d", question(as_of_ns=3 * DAY_NS), plan)])
    assert kept == replace(target, trace=None)
    readings.store_amended("A/1d", question(), Rung.SPECULATIVE, replace(target, words="again"))
    assert readings.read([ReadRequest("A/1d", question(as_of_ns=3 * DAY_NS), plan)]) == [kept]
    assert len(author.written) == 1


def test_a_provisional_decision_says_so_and_those_that_keep_its_view_do_too() -> None:
    author = Silent()
    loop, ledger = started(author)
    loop.run(lambda: None)
    found = [one for one in decisions(ledger) if one.view is not None]
    assert all(one.awaits_amendment for one in found)
    fresh = [one for one in found if one.has_own_reading]
    kept = [one for one in found if not one.has_own_reading]
    assert len(fresh) == len(author.written) > 0
    for one in fresh:
        assert one.rationale.template.endswith("+provisional")
        assert (
            f"The reading is provisional: the target model has confirmed 3 of its {NUM_TOKENS} tokens"
            in one.rationale.text
        )
        assert "Reading by target, then draft" in one.rationale.text
    assert kept
    for one in kept:
        assert one.rationale.text.endswith("is provisional: the target model has not answered yet.")
    assert len(loop.late.pending.by_question) == len(fresh)
    assert loop.late.pending.num_decisions == len(found)


def test_an_amendment_follows_what_was_recorded_meanwhile_and_later_decisions_keep_its_view() -> None:
    author = Silent()
    loop, ledger = started(author, num_days=40)
    seen: list[str] = []
    loop.recorder.watcher = lambda decided: seen.append(decided.decision.id)
    num_items = 0

    def answer() -> None:
        nonlocal num_items
        num_items += 1
        if num_items == 85:
            author.answer_all()

    loop.run(answer)
    found = decisions(ledger)
    assert seen == [one.id for one in found]
    amended = [one for one in found if one.amends]
    by_id = {one.id: place for place, one in enumerate(found)}
    assert amended
    for one in amended:
        place = by_id[one.amends]
        assert by_id[one.id] > place
        assert one.id == f"{found[place].id}/amended"
        assert one.view is not None
        after = [
            later
            for later in found[by_id[one.id] + 1 :]
            if later.view is not None and later.series == one.series and later.view.as_of_ns == one.as_of_ns
        ]
        for later in after:
            assert later.view == replace(one.view, trace=None)
    assert any(
        later.view is not None and later.view.trace is None and not later.view.provisional for later in found
    )
    assert loop.recorder.num_amended == len(amended)
    assert loop.recorder.num_decided == len(found) - len(amended)


@pytest.mark.parametrize("same", [True, False])
def test_the_rationale_is_written_anew_and_tells_whether_the_target_confirms(same: bool) -> None:
    author = LateAuthor(3, late_share=1.0, same_share=1.0 if same else 0.0)
    loop, ledger = started(author)
    for item in loop.feed:
        loop.step(item)
    loop.recorder.commit(now=True)
    found = {one.id: one for one in decisions(ledger)}
    amended = [one for one in found.values() if one.amends]
    assert amended
    for one in amended:
        before = found[one.amends].rationale
        ending = "the target model " + ("confirms the reading." if same else "reads the news differently.")
        assert one.rationale.text.endswith(ending)
        assert differs_only_in_news(before, one.rationale)
        assert "provisional:" not in one.rationale.text
        assert "Reading by target: " in one.rationale.text
        assert one.rationale.drivers == before.drivers


@pytest.mark.parametrize("most", [1, 4, 9])
def test_what_is_too_much_to_await_is_given_up_whole_oldest_first_and_counted(most: int) -> None:
    author = Silent()
    loop, ledger = started(author, num_days=40, max_pending_amendments=most)
    loop.run(lambda: None)
    author.answer_all()
    loop.amend_late()
    loop.recorder.commit(now=True)
    found = decisions(ledger)
    awaiting = [one for one in found if one.awaits_amendment]
    amended = {one.amends for one in found if one.amends}
    assert len(awaiting) > 2 * most
    assert len(amended) <= most
    assert loop.late.pending.num_abandoned == len(awaiting) - len(amended)
    for one in awaiting:  # with the view that it keeps, or not at all
        assert one.view is not None
        of_its_view = {
            other.id in amended
            for other in awaiting
            if other.view and (other.series, other.view.read_at_ns) == (one.series, one.view.read_at_ns)
        }
        assert len(of_its_view) == 1
    if most == 9:
        assert amended


def test_a_run_that_ends_waits_for_what_is_late_as_long_as_it_may() -> None:
    author = Silent()
    loop, ledger = started(author)
    waits = 0

    def patient() -> bool:
        nonlocal waits
        waits += 1
        if waits == 3:
            author.answer_all()
        return waits < 100

    loop._keep_waiting = patient
    loop.run(lambda: None)
    assert waits == 3
    assert not loop.late.pending.by_question
    assert (
        sum(bool(one.amends) for one in decisions(ledger))
        == sum(one.awaits_amendment for one in decisions(ledger))
        > 0
    )


def test_a_run_that_is_stopped_waits_for_nothing_and_the_next_start_asks_again() -> None:
    author = Silent()
    loop, ledger = started(author)
    loop._keep_waiting = lambda: pytest.fail("a stopped run waited")
    num_items = 0

    def stop_late() -> None:
        nonlocal num_items
        num_items += 1
        if num_items == 66:
            loop.stop()

    loop.run(stop_late)
    state = encode_state(loop.state())
    awaited = set(loop.late.pending.by_question)
    assert awaited
    again = LateAuthor(1, late_share=0.0)
    rest = loop_over(days(30, SYMBOLS, news_every=4)[66:], again, ledger, ListOutlet(ledger.entries))
    rest.restore(decode_state(state))
    rest.run(lambda: None)
    assert set(again.pursued) == awaited
    assert {one.amends for one in decisions(ledger) if one.amends} == {
        one.id for one in decisions(ledger) if one.awaits_amendment
    }


def test_a_series_that_closes_twice_at_an_instant_is_amended_once() -> None:
    author = Silent()
    items = days(30, ("A",), news_every=4)
    last = next(item for item in reversed(items) if isinstance(item, Bar))
    at_ns = last.available_at_ns
    fresh = News(at_ns, at_ns, "wire", 99, "n99", "Item 99", ("A",))
    twice = [*items, fresh, replace(last, row=99), replace(last, row=100, start_ns=last.start_ns + 1)]
    ledger = MemoryLedger()
    loop = loop_over([*items[:-1], fresh, last, *twice[-2:]], author, ledger, ListOutlet(), late_wait_ms=0.0)
    loop.run(lambda: None)
    same = [one for one in decisions(ledger) if one.as_of_ns == at_ns]
    assert len(same) == 3
    assert len({one.id for one in same}) == 1
    author.answer_all()
    loop.amend_late()
    loop.recorder.commit(now=True)
    assert [one.amends for one in decisions(ledger) if one.amends].count(same[0].id) == 1
    assert not loop.late.pending.by_question


def test_an_amendment_in_the_ledger_of_what_awaits_nothing_stops_the_run() -> None:
    author = LateAuthor(3, late_share=1.0)
    loop, ledger = started(author)
    loop.run(lambda: None)
    place = next(place for place, one in enumerate(decisions(ledger)) if one.amends)
    for altered in (
        [*ledger.entries[: place + 1], ledger.entries[place]],
        [
            *ledger.entries[:place],
            encode_decision(replace(decisions(ledger)[place], view=None)),
        ],
    ):
        again = loop_over(
            days(30, SYMBOLS, news_every=4), LateAuthor(3), MemoryLedger(altered), ListOutlet(altered)
        )
        with pytest.raises(IntegrityError, match=r"in the ledger amends|differs from its entry"):
            again.run(lambda: None)


def test_patience_ends_with_its_time_and_sleeps_no_longer() -> None:
    now_s, slept = [10.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now_s[0] += seconds

    wait = wait_until(100.0, lambda: now_s[0], sleep, step_s=0.03)
    assert [wait() for _ in range(6)] == [True] * 4 + [False] * 2
    assert sum(slept) == pytest.approx(0.1)
    assert not wait_until(0.0, lambda: 0.0, sleep)()


def test_while_events_come_the_target_is_asked_now_and_then_and_in_silence_at_once() -> None:
    author = Silent()
    loop, _ = started(author, late_poll_ms=1_000.0)
    polls = 0
    now_ns = [0]
    loop.recorder.elapsed_ns = lambda: now_ns[0]
    late = author.take_late_completions

    def counted() -> list[tuple[str, Completion | RequestRefused]]:
        nonlocal polls
        polls += 1
        return late()

    author.take_late_completions = counted  # type: ignore[method-assign]
    items = iter(loop.feed)
    while not loop.late.pending.by_question:
        loop.step(next(items))
    polls, last = 0, next(items)
    now_ns[0] += 2 * 10**9
    for _ in range(4):
        now_ns[0] += 10**8
        loop.step(last)
    assert polls == 1
    loop.step(TimePassed(last.available_at_ns))
    assert polls == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_pending_amendments": 0},
        {"late_wait_ms": -1.0},
        {"late_wait_ms": float("nan")},
        {"late_poll_ms": -1.0},
    ],
)
def test_limits_that_cannot_be_are_one_line(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=r"pipeline\.\w+ must be"):
        PipelineConfig(**wrong)  # type: ignore[arg-type]


def test_awaited_decisions_are_a_plain_state() -> None:
    author = Silent()
    loop, _ = started(author)
    loop.run(lambda: None)
    awaited = PendingAmendments(8)
    awaited.restore(json.loads(json.dumps(loop.late.pending.state())))
    assert awaited.by_question == loop.late.pending.by_question


def test_files_tell_which_lines_amend_which(tmp_path: Path) -> None:
    loop, ledger = started(LateAuthor(3, late_share=1.0))
    loop.run(lambda: None)
    place = next(place for place, one in enumerate(decisions(ledger)) if one.amends)
    amended = decisions(ledger)[place]
    back = PolicyVerdict(PolicyOutcome.WITHHOLD, ["too wide"])
    told = [*ledger.entries[: place + 1], encode_decision(replace(amended, verdict=back))]
    entries = LedgerEntries(
        len(told), lambda: ((entry, leaf_hash(entry)) for entry in told), told.__getitem__
    )
    rows = pq.read_table(write_parquet(tmp_path, entries)).to_pylist()
    assert [row["amends"] for row in rows[-2:]] == [amended.amends, amended.amends]
    assert {row["amends"] for row in rows[:place] if not row["id"].endswith("/amended")} == {None}

"""Views that come after their decision was released: from a target that answers late, or from a reading in depth.

Which answers come late, and when, depends on the network. So after a crash amendments are made again from the ledger
first; what is still pending then is asked for again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import Decision, Rung
from htfi.domain.events import FeedItem, TimePassed
from htfi.domain.generation import RequestRefused
from htfi.domain.governance import GovernanceFacts, SwapMove
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_MS
from htfi.governance.fairness.swap_test import judge_swaps
from htfi.narrative.question import question_id, without_bodies
from htfi.pipeline.amendments import (
    DependentDecision,
    PendingAmendment,
    PendingAmendments,
    is_set_aside,
    make_amendment,
    recorded_comparison_part,
)
from htfi.pipeline.components import Components, RunContext
from htfi.pipeline.late_swap_tests import LateSwapTests, TestedView
from htfi.pipeline.recorder import DecisionRecorder, unmerged_view
from htfi.pipeline.swap_tests import mover, swap_moves
from htfi.pipeline.view_cache import ReadRequest, late_question_id
from htfi.pipeline.weighing import max_view_weight


class LateView(NamedTuple):
    """What a view amends, and the moves that its reader's swap test found."""

    pending: PendingAmendment
    view: NewsView
    moves: tuple[SwapMove, ...] = ()


class LateViews:
    """Pending amendments, and the late views that complete them."""

    def __init__(self, recorder: DecisionRecorder, components: Components, context: RunContext) -> None:
        self.pending = PendingAmendments(context.pipeline.max_pending_amendments)
        self._recorder, self._cursor = recorder, recorder.cursor
        self._components, self._context = components, context
        self._is_resumed = (
            False  # all that the ledger held is made again, and what is pending asked for again
        )
        self._next_poll_ns = 0
        self._tests = LateSwapTests(
            components.news,
            components.views,
            lambda: components.governance.fairness,
            context.pipeline.max_pending_amendments,
        )

    @property
    def is_waiting(self) -> bool:
        """Whether readers may still answer something that is pending."""
        return self._is_resumed and bool(self.pending.by_question)

    def is_due(self, item: FeedItem) -> bool:
        """Whether to `poll` after this item: while nothing happens, and else every `late_poll_ms`."""
        if not self._is_resumed:
            return True
        if not self.pending.by_question:
            return False
        now_ns = self._recorder.elapsed_ns()
        if type(item) is not TimePassed and now_ns < self._next_poll_ns:
            return False
        self._next_poll_ns = now_ns + round(self._context.pipeline.late_poll_ms * NS_PER_MS)
        return True

    def expect(self, index: int, request: ReadRequest, decision: Decision) -> PendingAmendment | None:
        """Note a decision whose view may be amended; one that is to be read again at once is handed back.

        `index` is its entry in the ledger.
        """
        if decision.plan.rung_after_release is not None:
            return self._pending_amendment(index, request, decision)
        if not decision.awaits_amendment or decision.view is None:
            return None
        if decision.has_own_reading:
            self.pending.add(self._pending_amendment(index, request, decision))
            return None
        first = self.pending.find_by_read_time(decision.series, decision.view.read_at_ns)
        if first is None:  # the answer that its view waits for was given up
            self.pending.num_abandoned += 1
        else:
            self.pending.add_dependent(first, self._dependent(index, request, decision, first.rung))
        return None

    def recorded(self) -> Iterator[LateView]:
        """The amendments that stand next in the ledger. Raises: IntegrityError."""
        while (found := self._cursor.next_amendment()) is not None:
            amendment, view = found
            yield LateView(self.pending.pop_recorded(amendment), view)

    def poll(self) -> Iterator[LateView]:
        """What readers have answered late; after a crash first what the ledger holds of it."""
        if not self._is_resumed:
            yield from self.recorded()
            if self._cursor.is_replaying:
                return
            self._is_resumed = True
            for rung, questions in self.pending.questions.items():
                self._components.views.resume_requests(rung, questions)
        self.pending.drop_oldest()
        for name, view in self._components.views.late_views():
            for tested in self._tests.take(name, view):
                yield from self._tested(tested)
            if isinstance(view, RequestRefused):
                self.pending.count_abandoned(self.pending.pop_answered(name))
                continue
            first, *_ = self.pending.by_question.get(name, (None,))
            if first is not None:
                yield from self._begin_test(name, first, view)

    def _begin_test(self, name: str, pending: PendingAmendment, view: NewsView) -> Iterator[LateView]:
        for tested in self._tests.begin(name, pending.rung, pending.question, view):
            yield from self._tested(tested)

    def _tested(self, tested: TestedView) -> Iterator[LateView]:
        """What a tested view amends; nothing where it could not be tested."""
        answered = self.pending.pop_answered(tested.name)
        if tested.moves is None:
            self.pending.count_abandoned(answered)
            return
        for pending in answered:
            yield LateView(pending, tested.view, tested.moves)

    def read_deeper(self, waiting: Sequence[PendingAmendment]) -> Iterator[LateView]:
        """Read again what is released; what the ledger holds of it is not read again."""
        views: dict[str, NewsView] = {}
        unread: dict[Rung, list[PendingAmendment]] = {}
        for pending in waiting:
            found = self._cursor.next_decision(len(views))
            if found is None:
                unread.setdefault(pending.rung, []).append(pending)
            elif found.amends == pending.first_id and (view := unmerged_view(found)) is not None:
                views[pending.first_id] = view
        for rung, together in unread.items():
            questions = [pending.question for pending in together]
            read = self._components.views.read_uncached(rung, questions, self._context.fidelity.deep_ms)
            views |= {pending.first_id: view for pending, view in zip(together, read, strict=True)}
        for pending in waiting:
            view = views.get(pending.first_id)
            is_late = view.provisional if view is not None else self._cursor.is_replaying
            if is_late and self._components.views.answers_late(pending.rung):
                self.pending.add(pending)
            elif view is not None and view.confidence > 0.0 and not view.provisional:
                if self._cursor.is_replaying:
                    yield LateView(pending, view)
                    continue
                self.pending.add(pending)
                name = late_question_id(pending.rung, question_id(pending.question))
                yield from self._begin_test(name, pending, view)
            else:
                self.pending.count_abandoned([pending])

    def amendments(self, late: LateView) -> Iterator[tuple[Decision, bool]]:
        """The amendments of all decisions that keep what this view replaces, and whether each is of its series' newest
        on a bar.

        Nothing comes between them: a crash leaves a part, which the next start finds in the ledger and completes.
        """
        pending, view = late.pending, late.view
        forecaster, template = self._components.forecaster, ""
        for dependent in pending.dependents:
            first = self._put_to_test(self._recorder.decision(dependent.index), late)
            amendment = make_amendment(
                first,
                dependent,
                pending.question,
                view,
                template,
                forecaster,
                self._context,
                self._components.governance,
                self._recorder.num_recorded,
                self._cursor.next_set_aside(),
            )
            if not template and not is_set_aside(amendment):
                self._store(late, amendment)
            template = recorded_comparison_part(amendment)
            is_newest = forecaster.age(pending.series) == dependent.age and not first.is_between_bars
            yield amendment, is_newest

    def _put_to_test(self, first: Decision, late: LateView) -> Decision:
        """The first decision with the swap test of the view that takes the place of its own: both must stand.

        What the ledger holds of it stands.
        """
        swaps = self._cursor.next_swaps()
        if swaps is None:
            limits = self._components.governance.fairness_at(self._recorder.num_recorded)
            swaps = UNSET if limits is None else judge_swaps((*swap_moves(first), *late.moves), limits)
        if swaps is UNSET and first.governance is UNSET:
            return first
        governed = GovernanceFacts(0, "") if first.governance is UNSET else first.governance
        return replace(first, governance=replace(governed, swaps=swaps))

    def _store(self, late: LateView, amendment: Decision) -> None:
        """Keep a late view, and its test, for the decisions on the same news to come."""
        (pending, view, _), components = late, self._components
        components.views.store_amended(pending.series, pending.question, pending.rung, view)
        if (limits := components.governance.fairness) is not None:
            moves = [one for one in swap_moves(amendment) if one.reader == mover(pending.rung, view)]
            components.swap_tests.note_late(pending.series, pending.question, view, moves, limits)

    def _pending_amendment(self, index: int, request: ReadRequest, decision: Decision) -> PendingAmendment:
        rung = decision.plan.rung_after_release or decision.plan.rung
        dependent = self._dependent(index, request, decision, rung)
        return PendingAmendment(decision.series, rung, without_bodies(request.question), [dependent])

    def _dependent(
        self, index: int, request: ReadRequest, decision: Decision, rung: Rung
    ) -> DependentDecision:
        forecaster, components = self._components.forecaster, self._components
        limit = max_view_weight(request, components.news.suspicion_monitor.config)
        weight = [
            min(share, limit) for share in forecaster.track_record_weight(components.views.version(rung))
        ]
        has_own_reading = decision.has_own_reading or decision.plan.rung_after_release is not None
        return DependentDecision(index, decision.id, forecaster.age(decision.series), weight, has_own_reading)

    def state(self) -> dict[str, Any]:
        return self.pending.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.pending.restore(state)

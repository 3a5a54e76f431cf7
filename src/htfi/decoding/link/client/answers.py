"""Completions of a request, with where and by whom they were written, and answers that come late.

Late answers are bounded: beyond the bound the oldest request is given up, and the oldest unread answer is dropped.
"""

from collections import OrderedDict
from collections.abc import Iterator

from msgspec.structs import replace

from htfi.decoding.link.client.request import InFlightRequest
from htfi.decoding.link.frames import DraftMode
from htfi.domain.generation import Completion, RequestRefused

ALONE = "edge alone"  # the beginning of the place of an answer that the draft finished
_STRATEGY_WORDS = {
    DraftMode.PLAIN: ("plain", "plain"),
    DraftMode.CLOUD: ("cloud", "with its own draft"),
    DraftMode.LOCKSTEP: ("lockstep", "in lock-step"),
    DraftMode.PIPELINED: ("flight", "in flight"),
}


def target_completion(inflight: InFlightRequest, draft: str) -> Completion:
    """The target's answer; its place is the cloud that accepted most of it first."""
    asked, tokens, attempt = inflight.tokenized, inflight.sequence.tokens, inflight.main_attempt
    strategy, place = "", ""  # for a grammar that leaves nothing open
    if attempt is not None:
        strategy, by_strategy = _STRATEGY_WORDS[attempt.placed.draft_mode]
        place = f"{attempt.cloud}, {by_strategy}"
    return Completion(
        fields=asked.grammar.fields(tokens),
        tokens=tuple(tokens),
        num_prompt_tokens=len(asked.prompt),
        prompt=tuple(asked.prompt),
        strategy=strategy,
        draft=draft if inflight.num_drafted else "",
        rounds=tuple(inflight.rounds),
        place=place,
    )


def provisional_completion(
    inflight: InFlightRequest, written: Completion, draft: str, words: str
) -> Completion:
    """The draft's answer from the last accepted token on, with the rounds of the accepted ones."""
    return replace(
        written,
        strategy="alone",
        draft=draft,
        rounds=tuple(inflight.rounds),
        place=f"{ALONE}, {words}",
        num_verified=len(inflight.sequence.tokens),
    )


class LateCompletions:
    """Pending and ready answers by the id of the request."""

    def __init__(self, most: int) -> None:
        self.max_pending = most
        self._pending: OrderedDict[str, InFlightRequest] = OrderedDict()
        self._ready: OrderedDict[str, Completion | RequestRefused] = OrderedDict()

    def __iter__(self) -> Iterator[InFlightRequest]:
        """All that are awaited; some may be answered meanwhile."""
        return iter(list(self._pending.values()))

    def knows(self, request_id: str) -> bool:
        return request_id in self._pending or request_id in self._ready

    def take_back(self, request_id: str, name: bytes) -> InFlightRequest | None:
        """A pending request, if it equals this one: now its answer is waited for."""
        known = self._pending.get(request_id)
        if known is None or known.wire.name != name:
            return None
        del self._pending[request_id]
        known.is_late = False
        return known

    def defer(self, inflight: InFlightRequest) -> list[InFlightRequest]:
        """Await an answer late; the requests that are given up for it, to be cancelled."""
        inflight.is_late = True
        request_id = inflight.tokenized.request.id
        given_up: list[InFlightRequest] = []
        if (other := self._pending.pop(request_id, None)) is not None:  # another request with the same id
            given_up.append(other)
        self._pending[request_id] = inflight
        if len(self._pending) > self.max_pending:
            oldest_id, oldest = self._pending.popitem(last=False)
            given_up.append(oldest)
            self._store(oldest_id, RequestRefused("given up: too many late answers are pending"))
        return given_up

    def record(self, inflight: InFlightRequest, answer: Completion | RequestRefused) -> None:
        del self._pending[inflight.tokenized.request.id]
        self._store(inflight.tokenized.request.id, answer)

    def record_refusal(self, request_id: str, refusal: RequestRefused) -> None:
        """Refuse a request that was never pending."""
        self._store(request_id, refusal)

    def take_all(self) -> list[tuple[str, Completion | RequestRefused]]:
        """Answers since the last call, each once."""
        by_strategy = list(self._ready.items())
        self._ready.clear()
        return by_strategy

    def clear(self) -> None:
        self._pending.clear()
        self._ready.clear()

    def _store(self, request_id: str, answer: Completion | RequestRefused) -> None:
        self._ready[request_id] = answer
        if len(self._ready) > max(2 * self.max_pending, 1):
            self._ready.popitem(last=False)

"""Drafting ahead of the accepted tokens, slice by slice, and finishing an answer with the draft alone."""

from collections.abc import Callable, Sequence

from htfi.decoding.link.client.request import InFlightRequest
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.strategies.chain import ChainDraftingNetwork, ChainStrategy
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, RequestRefused

_SMOOTHING = 0.1  # the weight of a new measurement


class AheadDrafter:
    """`alone` is the draft as a generator; a chain drafts in the same sessions, so that a prompt is read once."""

    def __init__(self, alone: LocalGenerator, clock: Callable[[], float], draft_ms: float) -> None:
        self.generator = alone
        self._chain = ChainStrategy(alone.sessions)
        self._one_by_one = isinstance(alone.sessions.network, ChainDraftingNetwork)
        self._clock = clock
        self._draft_ms = draft_ms  # per token, as measured

    def draft(self, wanting: Sequence[InFlightRequest]) -> list[InFlightRequest]:
        """Draft one slice for these requests, or for one of them; those for which nothing can be drafted."""
        if not wanting:
            return []
        if (
            self._one_by_one
        ):  # a chain in one call costs less than a pass per token of all, and is sent sooner
            wanting = [min(wanting, key=lambda each: len(each.drafted.tokens))]
        began_s = self._clock()
        for each in wanting:
            if each.diverged_at >= 0:
                self._chain.rewind(each.drafted, each.diverged_at)
                each.diverged_at = -1
        try:
            trees = self._chain.speculate(
                [each.drafted for each in wanting], [each.num_wanted for each in wanting]
            )
        except DependencyUnavailable:
            return list(wanting)
        spent_ms = 1e3 * (self._clock() - began_s)
        self._learn(spent_ms, sum(map(len, trees)))
        failed: list[InFlightRequest] = []
        for each, tree in zip(wanting, trees, strict=True):
            if each.has_drafted:
                each.draft_ms += spent_ms / len(wanting)
                each.num_timed += len(tree)
            each.has_drafted = True
            if len(tree):
                each.add_draft(tree.tokens, tree.states[-1])
            else:
                failed.append(each)
        return failed

    def finish(self, inflight: InFlightRequest) -> Completion | RequestRefused:
        """The answer as the draft writes it from the last accepted token on; the request keeps it as guesses."""
        asked, ahead = inflight.tokenized, inflight.drafted
        self.leave(inflight)  # its memory is needed
        began_s = self._clock()
        answer = self.generator.continue_from(asked.prompt, asked.request, ahead.tokens)
        if isinstance(answer, Completion) and (new := answer.tokens[len(ahead.tokens) :]):
            self._learn(1e3 * (self._clock() - began_s), len(new))
            inflight.add_draft(new, asked.grammar.done)
        return answer

    def leave(self, inflight: InFlightRequest) -> None:
        self._chain.finish(inflight.drafted)

    def finish_ms(self, inflight: InFlightRequest) -> float:
        """The longest time that finishing an answer with the draft may take."""
        return 0.0 if inflight.drafted.is_done else self._draft_ms * inflight.drafted.num_left

    def _learn(self, spent_ms: float, num_tokens: int) -> None:
        if num_tokens:
            self._draft_ms += _SMOOTHING * (spent_ms / num_tokens - self._draft_ms)

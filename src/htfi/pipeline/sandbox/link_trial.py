"""Readings over a faulty link between an edge and clouds, in one process and in virtual time: what came of each.

The target decodes every request plainly too. Whatever the link does, an answer of the target has those tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import msgspec
import numpy as np

from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.link.simulated.network import SimulatedNetwork
from htfi.domain.events import News
from htfi.domain.generation import Completion, GenerationRequest, PromptDialect, RequestRefused
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.sandbox.results import LinkOutcome
from htfi.governance.sandbox.trials import SandboxTrial, TrialLink
from htfi.narrative.answer import view_grammar
from htfi.narrative.ports import TextGenerator
from htfi.narrative.question import Question, build_prompt, question_id, shown_items
from htfi.pipeline.sandbox.messages import LinkReading
from htfi.pipeline.sandbox.news import headlines

NUM_READINGS = 16
DEADLINE_MS = 1_000.0  # of one reading, in virtual time
_DARK_EVERY = 4  # under CUTS, every so many readings nothing passes until the answer
_HEALED_S = 90.0  # for late answers once the link has no faults: more than edges wait for them
_PAUSE_S, _STEP_S = 1.0, 0.05  # between readings; between looks for late answers
_START_NS = 19_700 * NS_PER_DAY

_FAULTS = {
    TrialLink.LOSS: FrameFaults(delay_ms=10.0, jitter_ms=2.0, loses=0.05, duplicates=0.02),
    TrialLink.DELAYS: FrameFaults(delay_ms=60.0, jitter_ms=30.0, overtakes=0.05),
    TrialLink.CUTS: FrameFaults(delay_ms=10.0, jitter_ms=2.0, ends=0.02, redial_s=0.2),
    TrialLink.CORRUPT: FrameFaults(delay_ms=10.0, jitter_ms=2.0, corrupts=0.05),
}


class LateGenerator(TextGenerator, Protocol):
    """An edge's generator: answers in time, and the target's own where they come late."""

    def wait_ready(self, timeout_s: float) -> list[str]: ...

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]: ...


def run_link_trial(
    trial: SandboxTrial, network: SimulatedNetwork, edge: LateGenerator, plain: TextGenerator
) -> list[LinkReading]:
    """Put the trial's questions to the edge, one after another; `plain` is the target alone, beside the network."""
    faults = _FAULTS[trial.link]
    edge.wait_ready(1.0)
    network.frame_faults = faults
    found: list[LinkReading] = []
    expected: list[tuple[int, ...] | None] = []
    waiting: dict[str, int] = {}  # places of provisional answers

    def take_late(until_s: float) -> None:
        """Let time pass, as between two decisions: the edge looks for late answers meanwhile."""
        while network.now_s < until_s:
            for name, answer in edge.take_late_completions():
                place = waiting.pop(name, None)
                if place is not None and isinstance(answer, Completion):
                    same = answer.tokens == expected[place]
                    found[place] = msgspec.structs.replace(found[place], is_answered=True, same_tokens=same)
            network.advance(network.now_s + _STEP_S)

    for place, request in enumerate(link_requests(trial, edge.dialect)):
        (alone,) = plain.write([request])
        expected.append(alone.tokens if isinstance(alone, Completion) else None)
        if trial.link is TrialLink.CUTS and place % _DARK_EVERY == _DARK_EVERY - 1:
            network.frame_faults = replace(faults, is_dark=True)
        began_s = network.now_s
        (answer,) = edge.write([request])
        reading = LinkReading(1e3 * (network.now_s - began_s))
        network.frame_faults = faults
        if isinstance(answer, Completion) and answer.is_provisional:
            waiting[request.id] = place
        elif isinstance(answer, Completion):
            same = answer.tokens == expected[place]
            reading = msgspec.structs.replace(reading, in_time=True, is_answered=True, same_tokens=same)
        found.append(reading)
        take_late(network.now_s + _PAUSE_S)
    network.frame_faults = NO_FAULTS
    until_s = network.now_s + _HEALED_S
    while waiting and network.now_s < until_s:
        take_late(network.now_s + _PAUSE_S)
    return found


def link_requests(trial: SandboxTrial, dialect: PromptDialect) -> list[GenerationRequest]:
    """The requests of a trial: each a question about one headline, drawn by the trial's seed."""
    rng = np.random.Generator(np.random.PCG64(trial.seed))
    texts = [text for one in headlines().values() for text in one]
    made: list[GenerationRequest] = []
    for place in range(NUM_READINGS):
        as_of_ns = _START_NS + place * NS_PER_DAY
        item = News(
            available_at_ns=as_of_ns - 7_200 * NS_PER_S, event_time_ns=as_of_ns - 7_200 * NS_PER_S, source="wire",
            row=place + 1, id=f"link-{place}", symbols=("ALFA",),
            headline=texts[int(rng.integers(len(texts)))].replace("{name}", "ALFA"),
        )  # fmt: skip
        context = tuple(float(value) for value in rng.normal(size=16).round(3))
        question = Question("ALFA", as_of_ns, NS_PER_DAY, (item,), context)
        prompt, shared = build_prompt(question, dialect)
        made.append(
            GenerationRequest(
                prompt, view_grammar(dialect, len(shown_items(question))), int(rng.integers(1 << 31)), 1.0,
                DEADLINE_MS, shared, "view", id=question_id(question),
            )
        )  # fmt: skip
    return made


def link_figures(readings: Sequence[LinkReading]) -> LinkOutcome:
    """What readings over a link come to."""
    taken = [one.took_ms for one in readings]
    return LinkOutcome(
        num_readings=len(readings),
        num_in_time=sum(one.in_time for one in readings),
        num_other_tokens=sum(one.is_answered and not one.same_tokens for one in readings),
        num_stalled=sum(not one.is_answered for one in readings),
        num_late=sum(one.took_ms > DEADLINE_MS for one in readings),
        p95_ms=float(np.quantile(taken, 0.95)) if taken else 0.0,
    )

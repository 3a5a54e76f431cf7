"""Runs one side of a trial, candidate or champion, in a confined process, and keeps what it answered."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import htfi
from htfi import sample
from htfi.adapters.sandbox.process import ConfinedProcess
from htfi.governance.sandbox.results import Bounds, Enforcement, LinkOutcome, TrialEnding, TrialStopped
from htfi.governance.sandbox.trials import SandboxTrial
from htfi.pipeline.sandbox.link_trial import link_figures
from htfi.pipeline.sandbox.messages import (
    Answers,
    BeginCandidate,
    Failure,
    LinkAnswers,
    OpenCandidate,
    Ready,
    RunLink,
    SeriesAnswer,
    TakeEvents,
    decode_reply,
    encode,
)
from htfi.pipeline.sandbox.trial_events import TrialEvents
from htfi.wiring.sandbox.candidates import Tables

Advance = Callable[[float], None]
"""Called with the share of a trial that is done."""

_BATCH_S = 0.25  # of a peak load's events go in one frame


@dataclass(frozen=True, slots=True)
class TrialSide:
    """What one side answered: for each instant, an answer for each of its series; and how long that took."""

    answers: list[list[SeriesAnswer]] = field(default_factory=list[list[SeriesAnswer]])
    seconds: list[float] = field(default_factory=list[float])
    stopped: TrialStopped | None = None
    enforcement: Enforcement = field(default_factory=Enforcement)
    printed: str = ""
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Contender:
    """Candidate or champion as a process opens it: its settings, its code, and the folders that it reads."""

    tables: Tables
    expert: str = ""
    folders: tuple[Path, ...] = ()
    reads_news: bool = False


def run_side(
    contender: Contender,
    stream: TrialEvents,
    bounds: Bounds,
    advance: Advance = lambda _: None,
    *,
    with_bubblewrap: bool | None = None,
) -> TrialSide:
    """Feed a stream to a contender, an instant at a time: it can see nothing of the next before it has answered.

    Raises: DependencyUnavailable where no process can be started.
    """
    side, began_s = TrialSide(), time.monotonic()
    process = _start(contender, bounds, with_bubblewrap)
    try:
        stopped, enforcement = _open(process, contender, bounds)
        if stopped is None:
            stopped = _feed(process, stream, side, bounds, advance)
        took_s = time.monotonic() - began_s
        return TrialSide(side.answers, side.seconds, stopped, enforcement, process.printed, took_s)
    finally:
        process.close()


@dataclass(frozen=True, slots=True)
class LinkSide:
    """What one side answered over links: for each trial its figures, and what came between where it was stopped."""

    figures: list[LinkOutcome] = field(default_factory=list[LinkOutcome])
    stopped: TrialStopped | None = None
    enforcement: Enforcement = field(default_factory=Enforcement)


def run_links(
    contender: Contender,
    trials: Sequence[SandboxTrial],
    bounds: Bounds,
    advance: Advance = lambda _: None,
    *,
    with_bubblewrap: bool | None = None,
) -> LinkSide:
    """All trials of a contender's pair over simulated links, in one process.

    Raises: DependencyUnavailable where no process can be started.
    """
    figures: list[LinkOutcome] = []
    # One answer is a whole trial here.
    bounds = msgspec.structs.replace(bounds, answer_s=bounds.wall_s, wall_s=len(trials) * bounds.wall_s)
    process = _start(contender, bounds, with_bubblewrap)
    try:
        stopped, enforcement = _open(process, contender, bounds, over_link=True)
        for place, trial in enumerate(trials if stopped is None else ()):
            advance(place / len(trials))
            reply = _reply(process.exchange(encode(RunLink(trial)), bounds.answer_s))
            if not isinstance(reply, LinkAnswers):
                stopped = _stopped(reply)
                break
            figures.append(link_figures(reply.readings))
        return LinkSide(figures, stopped, enforcement)
    finally:
        process.close()


def _start(contender: Contender, bounds: Bounds, with_bubblewrap: bool | None) -> ConfinedProcess:
    readable = [*python_places(), *contender.folders]
    masked = [Path(file) for file in sample.FILES]
    return ConfinedProcess(_program(), readable, masked, bounds, with_bubblewrap=with_bubblewrap)


def _open(
    process: ConfinedProcess, contender: Contender, bounds: Bounds, *, over_link: bool = False
) -> tuple[TrialStopped | None, Enforcement]:
    asked = OpenCandidate(
        tables=dict(contender.tables), expert=contender.expert, reads_news=contender.reads_news,
        memory_bytes=bounds.memory_bytes, processor_s=bounds.wall_s, over_link=over_link,
    )  # fmt: skip
    reply = _reply(process.exchange(encode(asked), bounds.open_s))
    if not isinstance(reply, Ready):
        return _stopped(reply), Enforcement()
    process.locked()
    enforcement = process.enforcement(reply.locks)
    begun = _reply(process.exchange(encode(BeginCandidate()), bounds.answer_s))
    return (None if isinstance(begun, Ready) else _stopped(begun)), enforcement


def _feed(
    process: ConfinedProcess, stream: TrialEvents, side: TrialSide, bounds: Bounds, advance: Advance
) -> TrialStopped | None:
    num = len(stream.instants)
    for place, instant in enumerate(stream.instants):
        frame = encode(TakeEvents(list(instant.events), list(instant.series)))
        began_s = time.perf_counter()
        reply = _reply(process.exchange(frame, bounds.answer_s))
        side.seconds.append(time.perf_counter() - began_s)
        if not isinstance(reply, Answers):
            return _stopped(reply)
        if [answer.series for answer in reply.answers] != list(instant.series):
            return TrialStopped(TrialEnding.MALFORMED, "it answers for other series than it was asked for")
        side.answers.append(reply.answers)
        if place % 16 == 0:
            advance(place / num)
    return None


def _reply(frame: bytes | TrialStopped) -> Ready | Answers | LinkAnswers | Failure | TrialStopped:
    if isinstance(frame, TrialStopped):
        return frame
    try:
        return decode_reply(frame)
    except (msgspec.DecodeError, ValueError) as error:
        return TrialStopped(TrialEnding.MALFORMED, f"its answer is no answer: {error}"[:200])


def _stopped(reply: Ready | Answers | LinkAnswers | Failure | TrialStopped) -> TrialStopped:
    match reply:
        case TrialStopped():
            return reply
        case Failure():
            ending = TrialEnding.REFUSED if reply.at_opening else TrialEnding.CRASHED
            if "more memory" in reply.words:
                ending = TrialEnding.OUT_OF_MEMORY
            return TrialStopped(ending, reply.words)
        case Ready() | Answers() | LinkAnswers():
            return TrialStopped(TrialEnding.MALFORMED, "it answers what was not asked")


def _program() -> str:
    paths = [str(place) for place in module_places()]
    return f"import sys; sys.path[:] = {paths!r}; from htfi.wiring.sandbox.candidate_process import serve; serve()"


def module_places() -> list[Path]:
    """Where Python's modules, installed packages and this one lie; no folder of whoever started the program."""
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.prefix).resolve()}
    entries = [Path(entry) for entry in sys.path if entry]
    found = [entry for entry in entries if any(entry.is_relative_to(prefix) for prefix in prefixes)]
    return [Path(htfi.__file__).parent.parent, *found]


def python_places() -> Sequence[Path]:
    """What Python needs to run, without what is in a folder that is there already."""
    named = [
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(sys.executable).resolve().parent.parent,
        *module_places(),
    ]
    named += [place.resolve() for place in named]
    found: list[Path] = []
    for place in sorted(place for place in set(named) if place.exists()):
        if not any(place.is_relative_to(one) for one in (*found, Path("/usr"))):
            found.append(place)
    return found

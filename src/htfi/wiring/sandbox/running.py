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
from htfi.governance.sandbox.results import Bounds, Enforcement, TrialEnding, TrialStopped
from htfi.pipeline.sandbox.messages import (
    Answers,
    BeginCandidate,
    Failure,
    OpenCandidate,
    Ready,
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
    readable = [*python_places(), *contender.folders]
    process = ConfinedProcess(
        _program(), readable, [Path(file) for file in sample.FILES], bounds, with_bubblewrap=with_bubblewrap
    )
    try:
        stopped, enforcement = _open(process, contender, bounds)
        if stopped is None:
            stopped = _feed(process, stream, side, bounds, advance)
        took_s = time.monotonic() - began_s
        return TrialSide(side.answers, side.seconds, stopped, enforcement, process.printed, took_s)
    finally:
        process.close()


def _open(
    process: ConfinedProcess, contender: Contender, bounds: Bounds
) -> tuple[TrialStopped | None, Enforcement]:
    asked = OpenCandidate(
        tables=dict(contender.tables), expert=contender.expert, reads_news=contender.reads_news,
        memory_bytes=bounds.memory_bytes, processor_s=bounds.wall_s,
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


def _reply(frame: bytes | TrialStopped) -> Ready | Answers | Failure | TrialStopped:
    if isinstance(frame, TrialStopped):
        return frame
    try:
        return decode_reply(frame)
    except (msgspec.DecodeError, ValueError) as error:
        return TrialStopped(TrialEnding.MALFORMED, f"its answer is no answer: {error}"[:200])


def _stopped(reply: Ready | Answers | Failure | TrialStopped) -> TrialStopped:
    match reply:
        case TrialStopped():
            return reply
        case Failure():
            ending = TrialEnding.REFUSED if reply.at_opening else TrialEnding.CRASHED
            if "more memory" in reply.words:
                ending = TrialEnding.OUT_OF_MEMORY
            return TrialStopped(ending, reply.words)
        case Ready() | Answers():
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

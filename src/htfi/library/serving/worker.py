"""Work that takes long, in a process of its own: forecasts of posted bars, scenarios, what a headline says, proofs.

A service starts `python -m htfi.library.serving.worker FOLDER` at the first question and asks it one at a time over two
pipes; a question that takes too long ends the process, and the next one starts another. So no question holds up
those who read, and none can hold the worker for ever.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

from htfi.client.bodies import ForecastQuestion, PostedForecasts, ScenarioQuestion
from htfi.domain import errors
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput, ServiceBusy, TooLong
from htfi.library.serving.answer_turns import AnswerTurns
from htfi.library.serving.record_questions import (
    EffectsQuestion,
    HeadlineQuestion,
    VerificationQuestion,
    answer_effects,
    answer_headline,
    answer_verification,
)
from htfi.library.serving.representations import forecast_of_decision

MAX_WAITING = 16
ANSWER_S = 60.0
_NICENESS = 5  # those who read, and the run, come first
_HEAD = 8  # bytes of a frame's length
_MAX_FRAME = 256 << 20


QuestionKind = Literal["forecast", "scenario", "headline", "effects", "verification"]


class UsageMeter(Protocol):
    """Counts what a question took, for the one who asked."""

    def add(self, *, tokens: int = 0, cpu_s: float = 0.0) -> None: ...


class _Question(msgspec.Struct, frozen=True):
    kind: QuestionKind
    body: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True):
    body: msgspec.Raw = msgspec.Raw(b"null")
    problem: str = ""
    kind: str = ""  # the name of its class in `domain.errors`
    cpu_s: float = 0.0  # that the process used for it


class WorkerFailed(DependencyUnavailable):
    """The worker's process ended at a question."""


class AnswerProcess:
    """The worker of a service; belongs to its event loop."""

    def __init__(
        self, folder: Path, tenant: str = "", turns: AnswerTurns | None = None, answer_s: float = ANSWER_S
    ) -> None:
        self._folder, self._answer_s = folder, answer_s
        self._tenant, self._turns = tenant, turns or AnswerTurns()
        self._deadline: asyncio.Timeout | None = None
        self._left_s = answer_s
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self.num_waiting = 0  # questions, the one in hand among them
        self.num_starts = 0  # of the process

    async def ask(self, kind: QuestionKind, body: msgspec.Struct, meter: UsageMeter | None = None) -> bytes:
        """The answer as JSON; what it took is metered.

        Raises: ServiceBusy, TooLong, WorkerFailed, and what the question is refused for.
        """
        if self.num_waiting >= MAX_WAITING:
            raise ServiceBusy(f"{MAX_WAITING} questions wait already: ask again in a while")
        question = msgspec.json.encode(_Question(kind, msgspec.Raw(msgspec.json.encode(body))))
        self.num_waiting += 1
        try:
            async with self._turn, self._turns.turn(self._tenant, self):
                answer = await self._answer(question)
                if meter is not None:
                    meter.add(cpu_s=answer.cpu_s)
        finally:
            self.num_waiting -= 1
        if answer.problem:
            raise _error_kind(answer.kind)(answer.problem)
        return bytes(answer.body)

    def pause(self) -> None:
        """Stop the process until `resume`; the time counts for nothing."""
        self._signal(signal.SIGSTOP)
        if self._deadline is not None:
            self._left_s = (self._deadline.when() or 0.0) - asyncio.get_running_loop().time()
            self._deadline.reschedule(None)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        if self._deadline is not None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + max(self._left_s, 0.0))

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _answer(self, question: bytes) -> _Answer:
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._answer_s) as self._deadline:
                process.stdin.write(len(question).to_bytes(_HEAD, "big") + question)
                await process.stdin.drain()
                num = int.from_bytes(await process.stdout.readexactly(_HEAD), "big")
                return msgspec.json.decode(await process.stdout.readexactly(num), type=_Answer)
        except TimeoutError:
            await self.close()
            raise TooLong(f"the answer took longer than {self._answer_s:g} s: ask for less at once") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.close()
            raise WorkerFailed("the process that works this out has ended: ask again") from None
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for the next one's
            raise
        finally:
            self._deadline = None
            self._signal(signal.SIGCONT)  # it may have been paused when its answer was there already

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self.num_starts += 1
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "htfi.library.serving.worker", str(self._folder),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
        return self._process


def _kind_name(error: HtfiError) -> str:
    """The nearest class of an error that `domain.errors` holds."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)


def _error_kind(name: str) -> type[HtfiError]:
    kind: type[HtfiError] = getattr(errors, name)
    return kind


def answer_forecast(body: ForecastQuestion) -> PostedForecasts:
    """The newest forecast of each series of the posted bars. Raises: InvalidInput."""
    import warnings

    import htfi

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        found = htfi.forecast(
            body.bars, symbol=body.symbol, interval=body.interval, horizons=body.horizons, news=body.news
        )
    return PostedForecasts(
        [forecast_of_decision(one.decision, None) for one in found.released],
        {one.decision.series: list(one.decision.verdict.reasons) for one in found.series if one.is_withheld},
        [str(note.message) for note in notes],
    )


def answer_scenario(folder: Path, body: ScenarioQuestion) -> Mapping[str, Any]:
    """What scenarios do to each series of the run and to the book. Raises: InvalidInput."""
    import htfi

    if not 200 <= body.draws <= 100_000:
        raise InvalidInput(f"draws is {body.draws}: ask for 200 to 100,000")
    found = htfi.scenario(
        folder, shock=body.shocks or None, headline=body.headlines or None, on=body.on, macro=body.macro or None,
        stress=body.stresses or None, positions=body.positions, horizon=body.horizon, interval=body.interval,
        seed=body.seed, draws=body.draws,
    )  # fmt: skip
    return found.figures


def _work(folder: Path, questions: BinaryIO, answers: BinaryIO) -> None:
    kinds: dict[str, tuple[type[msgspec.Struct], Callable[[Any], Any]]] = {
        "forecast": (ForecastQuestion, answer_forecast),
        "scenario": (ScenarioQuestion, lambda body: answer_scenario(folder, body)),
        "headline": (HeadlineQuestion, answer_headline),
        "effects": (EffectsQuestion, lambda body: answer_effects(folder, body)),
        "verification": (VerificationQuestion, lambda body: answer_verification(folder, body)),
    }
    while len(head := questions.read(_HEAD)) == _HEAD:
        before_s = time.process_time()
        question = msgspec.json.decode(questions.read(int.from_bytes(head, "big")), type=_Question)
        shape, answer = kinds[question.kind]
        try:
            body = answer(msgspec.json.decode(question.body, type=shape))
            found = _Answer(msgspec.Raw(msgspec.json.encode(body)))
        except HtfiError as error:
            found = _Answer(problem=str(error), kind=_kind_name(error))
        found = msgspec.structs.replace(found, cpu_s=time.process_time() - before_s)
        content = msgspec.json.encode(found)
        answers.write(len(content).to_bytes(_HEAD, "big") + content)
        answers.flush()


if __name__ == "__main__":
    pipe = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    os.setpgid(
        0, 0
    )  # Ctrl-C is for the service; in its session, without which niceness says nothing (sched(7))
    os.nice(_NICENESS)
    with os.fdopen(pipe, "wb") as own:
        _work(Path(sys.argv[1]), sys.stdin.buffer, own)

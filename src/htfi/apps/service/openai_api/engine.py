"""The engine process as the service asks it: many requests at once, each with answers of its own."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from http import HTTPStatus

import msgspec

from htfi.apps.service.openai_api.messages import (
    HEAD_BYTES,
    Answer,
    Begun,
    Cancel,
    Embed,
    Embedded,
    Part,
    Question,
    Refused,
    Write,
)
from htfi.domain.errors import HtfiError, ServiceBusy
from htfi.library.serving.worker import WorkerFailed
from htfi.wiring.service.language_models import LanguageModelPair

MAX_OPEN = 64  # texts and requests to embed that are open at once

_ENDED = Refused(0, "the process that writes has ended: ask again", HTTPStatus.SERVICE_UNAVAILABLE)


class RefusedByEngine(HtfiError):
    """The engine refused a request."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.status, self.param, self.code = HTTPStatus(refused.status), refused.param, refused.code


class EngineProcess:
    """The engine of a service, started at the first question and again after it ended; belongs to its event loop."""

    def __init__(self, pair: LanguageModelPair) -> None:
        self._command = (sys.executable, "-m", "htfi.apps.service.openai_api.engine_process", *pair)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._answers: dict[int, asyncio.Queue[Answer]] = {}
        self._num_open = 0
        self._last_id = 0

    async def write(self, asked: Write) -> AsyncGenerator[Begun | Part]:
        """That it has begun, then the parts of all texts until each has finished. Closing it frees what they held.

        Raises: ServiceBusy, RefusedByEngine, WorkerFailed.
        """
        num_left = len(asked.seeds)
        async with self._asked(asked, num_left) as answers:
            while num_left:
                answer = await answers.get()
                if isinstance(answer, Begun):
                    yield answer
                elif isinstance(answer, Part):
                    if answer.problem:
                        raise WorkerFailed(answer.problem)
                    num_left -= bool(answer.finish)
                    yield answer
                else:
                    raise _error_of(answer)

    async def embed(self, texts: list[str]) -> Embedded:
        """Raises: ServiceBusy, RefusedByEngine, WorkerFailed."""
        async with self._asked(Embed(self.next_id(), texts), 1) as answers:
            answer = await answers.get()
            if isinstance(answer, Embedded):
                return answer
            raise _error_of(answer)

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reading is not None:
            await self._reading

    def _asked(self, question: Write | Embed, num: int) -> "_Asked":
        return _Asked(self, question, num)

    async def _send(self, process: asyncio.subprocess.Process, question: Question) -> None:
        assert process.stdin is not None
        content = msgspec.msgpack.encode(question)
        try:
            process.stdin.write(len(content).to_bytes(HEAD_BYTES, "big") + content)
            await process.stdin.drain()
        except ConnectionError:
            raise WorkerFailed(_ENDED.message) from None

    async def begin(self, question: Write | Embed, num: int) -> asyncio.Queue[Answer]:
        """Send a question that will be open until `end`."""
        if self._num_open + num > MAX_OPEN:
            raise ServiceBusy(
                f"{self._num_open} texts are open already, of at most {MAX_OPEN}: ask again in a while"
            )
        self._num_open += num
        try:
            async with self._starting:
                process = await self._started()
            answers = self._answers[question.id] = asyncio.Queue()
            await self._send(process, question)
        except BaseException:
            await self.end(question, num, is_whole=True)
            raise
        return answers

    async def end(self, question: Write | Embed, num: int, *, is_whole: bool) -> None:
        self._answers.pop(question.id, None)
        self._num_open -= num
        if not is_whole and self._process is not None and self._process.returncode is None:
            with suppress(WorkerFailed):
                await asyncio.shield(self._send(self._process, Cancel(question.id)))

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            if self._reading is not None:
                await self._reading
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            self._reading = asyncio.create_task(self._read(self._process))
        return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand each answer to who waits for it; when the process has ended, say so to all."""
        assert process.stdout is not None
        decoder = msgspec.msgpack.Decoder(Answer)
        try:
            while True:
                num = int.from_bytes(await process.stdout.readexactly(HEAD_BYTES), "big")
                answer = decoder.decode(await process.stdout.readexactly(num))
                if answer.id in self._answers:
                    self._answers[answer.id].put_nowait(answer)
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        finally:
            for answers in self._answers.values():
                answers.put_nowait(_ENDED)


class _Asked:
    """One question while it is open."""

    def __init__(self, engine: EngineProcess, question: Write | Embed, num: int) -> None:
        self._engine, self._question, self._num = engine, question, num

    async def __aenter__(self) -> asyncio.Queue[Answer]:
        return await self._engine.begin(self._question, self._num)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._engine.end(self._question, self._num, is_whole=kind is None)


def _error_of(answer: Answer) -> HtfiError:
    assert isinstance(answer, Refused)
    return WorkerFailed(answer.message) if answer is _ENDED else RefusedByEngine(answer)

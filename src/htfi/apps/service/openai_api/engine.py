"""The engine process as the service asks it: many requests at once, each with answers of its own."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

import msgspec

from htfi.apps.service.openai_api.engine_turns import EngineTurns
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
    Turn,
    Write,
)
from htfi.domain.errors import HtfiError, ServiceBusy
from htfi.library.serving.answer_turns import AnswerTurns
from htfi.library.serving.worker import WorkerFailed
from htfi.wiring.service.language_models import LanguageModelPair

MAX_OPEN = 64  # texts and requests to embed of one tenant that are open at once

_ENDED = Refused(0, "the process that writes has ended: ask again", HTTPStatus.SERVICE_UNAVAILABLE)


class RefusedByEngine(HtfiError):
    """The engine refused a request."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.status, self.param, self.code = HTTPStatus(refused.status), refused.param, refused.code


class EngineProcess:
    """The engine of a service, started at the first question and again after it ended; belongs to its event loop.

    Tenants take turns at it, by what each used lately over its weight.
    """

    def __init__(self, pair: LanguageModelPair, weights: Mapping[str, float] | None = None) -> None:
        self._command = (sys.executable, "-m", "htfi.apps.service.openai_api.engine_process", *pair)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._answers: dict[int, asyncio.Queue[Answer]] = {}
        self._num_open = Counter[str]()
        self._turns = EngineTurns(AnswerTurns(weights or {}, num_at_once=1), self._send_turn)
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

    async def embed(self, texts: list[str], tenant: str = "") -> Embedded:
        """Raises: ServiceBusy, RefusedByEngine, WorkerFailed."""
        async with self._asked(Embed(self.next_id(), texts, tenant), 1) as answers:
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

    @asynccontextmanager
    async def _asked(self, question: Write | Embed, num: int) -> AsyncGenerator[asyncio.Queue[Answer]]:
        """A question of so many texts, sent when its tenant has a turn; open until the block ends."""
        tenant, is_sent, is_whole = question.tenant, False, False
        if self._num_open[tenant] + num > MAX_OPEN:
            raise ServiceBusy(
                f"{self._num_open[tenant]} texts are open already, of at most {MAX_OPEN}: ask again in a while"
            )
        self._num_open[tenant] += num
        try:
            async with self._turns.question(tenant):
                try:
                    async with self._starting:
                        process = await self._started()
                    answers = self._answers[question.id] = asyncio.Queue()
                    is_sent = True
                    await self._send(process, question)
                    yield answers
                    is_whole = True
                finally:
                    self._answers.pop(question.id, None)
                    if is_sent and not is_whole:
                        await self._cancel(question.id)
        finally:
            self._num_open[tenant] -= num

    async def _cancel(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(WorkerFailed):
                await asyncio.shield(self._send(self._process, Cancel(number)))

    def _send_turn(self, tenant: str, is_paused: bool) -> None:
        if self._process is not None and self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.write(_frame(Turn(tenant, is_paused)))

    async def _send(self, process: asyncio.subprocess.Process, question: Question) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(_frame(question))
            await process.stdin.drain()
        except ConnectionError:
            raise WorkerFailed(_ENDED.message) from None

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
            for tenant in self._turns.paused:
                self._send_turn(tenant, True)
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


def _frame(question: Question) -> bytes:
    content = msgspec.msgpack.encode(question)
    return len(content).to_bytes(HEAD_BYTES, "big") + content


def _error_of(answer: Answer) -> HtfiError:
    assert isinstance(answer, Refused)
    return WorkerFailed(answer.message) if answer is _ENDED else RefusedByEngine(answer)

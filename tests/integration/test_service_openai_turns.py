"""Tenants take turns at the process that writes: who used least lately is written first; what is held goes on after."""

import asyncio
import io
from dataclasses import dataclass, field

import msgspec
import pytest

from htfi.apps.service.openai_api.engine import MAX_OPEN, EngineProcess
from htfi.apps.service.openai_api.engine_process import Engine
from htfi.apps.service.openai_api.engine_turns import EngineTurns
from htfi.apps.service.openai_api.messages import (
    HEAD_BYTES,
    Answer,
    Embed,
    Embedded,
    Part,
    Turn,
    Write,
)
from htfi.domain.errors import ServiceBusy
from htfi.library.serving.answer_turns import AnswerTurns
from htfi.wiring.service.language_models import SHIPPED_PAIR, LanguageModels


def write(number: int, tenant: str, max_tokens: int) -> Write:
    return Write(
        number, "Oil rises", [number], max_tokens, 1.0, 1.0, [], None, "text", is_stream=False, tenant=tenant
    )


@pytest.fixture(scope="module")
def models() -> LanguageModels:
    return LanguageModels()


def answers_in(written: io.BytesIO) -> list[Answer]:
    content, found, at = written.getvalue(), list[Answer](), 0
    while at < len(content):
        end = at + HEAD_BYTES + int.from_bytes(content[at : at + HEAD_BYTES], "big")
        found.append(msgspec.msgpack.decode(content[at + HEAD_BYTES : end], type=Answer))
        at = end
    return found


@dataclass(slots=True)
class _Run:
    """An engine and what it answered."""

    models: LanguageModels
    written: io.BytesIO = field(default_factory=io.BytesIO)

    def texts(self, *, is_paused: bool) -> list[tuple[int, str]]:
        """Ids and texts, in the order in which they were whole; after a round the first tenant may be paused."""
        engine = Engine(self.models, self.written)
        for number in range(1, 21):
            engine.take(write(number, "flood", 12))
        engine.take(Embed(22, ["oil", "gold"], "flood"))
        self.models.batch.step()  # texts are under way, and hold rows
        if is_paused:
            engine.take(Turn("flood", is_paused=True))
            assert engine.is_idle
        engine.take(write(21, "quiet", 6))
        while not engine.is_idle:
            engine.turn()
        if is_paused:
            assert [one.id for one in self._ended()] == [21]
            engine.take(Turn("flood", is_paused=False))
            while not engine.is_idle:
                engine.turn()
        return [(one.id, one.text) for one in self._ended() if isinstance(one, Part)]

    def _ended(self) -> list[Part | Embedded]:
        return [
            one
            for one in answers_in(self.written)
            if isinstance(one, Embedded) or (isinstance(one, Part) and one.finish)
        ]


def test_held_texts_wait_while_another_tenant_is_written_and_come_out_the_same(
    models: LanguageModels,
) -> None:
    plain, held = _Run(models).texts(is_paused=False), _Run(models).texts(is_paused=True)
    assert len(plain) == 21
    assert held[0][0] == 21
    assert plain[0][0] != 21
    assert dict(held) == dict(plain)


def test_one_turn_is_shared_by_all_questions_of_a_tenant() -> None:
    log: list[str] = []

    async def scene() -> None:
        turns = EngineTurns(
            AnswerTurns(num_at_once=1), lambda name, is_paused: log.append(f"{name} {is_paused}")
        )
        async with turns.question("flood"), turns.question("flood"):
            await asyncio.sleep(0.05)
            async with turns.question("quiet"):
                assert turns.paused == ["flood"]
                log.append("quiet")
            async with turns.question("flood"):
                pass
        async with turns.question("flood"), turns.question("quiet"):  # what ended left nothing
            log.append("again")

    asyncio.run(asyncio.wait_for(scene(), 20.0))
    assert log[:2] == ["flood True", "quiet"]
    assert log[2] == "flood False"
    assert "again" in log


def test_question_that_is_given_up_before_its_turn_leaves_nothing() -> None:
    async def scene() -> None:
        told: list[str] = []
        weights = {"a": 1.0, "b": 1e-6}
        turns = EngineTurns(
            AnswerTurns(weights, num_at_once=1), lambda name, is_paused: told.append(f"{name} {is_paused}")
        )

        async def ask() -> None:
            async with turns.question("b"):
                raise AssertionError

        async with turns.question("a"):
            asking = asyncio.create_task(ask())
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert asking.cancelled()
        async with turns.question("b"):
            pass

    asyncio.run(asyncio.wait_for(scene(), 20.0))


@pytest.mark.slow
def test_flood_of_chats_does_not_keep_another_tenant_waiting() -> None:
    """By order of service: first come, first served would write the quiet tenant's text after all 64."""
    ended: list[str] = []

    async def scene() -> int:
        engine = EngineProcess(SHIPPED_PAIR)
        some_ended = asyncio.Event()

        async def ask(tenant: str, max_tokens: int) -> None:
            async for _ in engine.write(write(engine.next_id(), tenant, max_tokens)):
                pass
            ended.append(tenant)
            some_ended.set()

        async def fill() -> None:
            asked = write(engine.next_id(), "flood", 8)
            async for _ in engine.write(msgspec.structs.replace(asked, seeds=list(range(MAX_OPEN)))):
                pass

        try:
            flood = [asyncio.create_task(ask("flood", 64)) for _ in range(MAX_OPEN)]
            await some_ended.wait()
            num_before = len(ended)
            with pytest.raises(ServiceBusy):
                await fill()
            await ask("quiet", 8)
            await asyncio.gather(*flood)
        finally:
            await engine.close()
        return num_before

    num_before = asyncio.run(asyncio.wait_for(scene(), 120.0))
    assert ended.count("flood") == MAX_OPEN
    assert ended.index("quiet") - num_before <= 20  # of those that were under way

"""Those who follow a service's record: what they are handed, in which order, and what waiting leaves behind."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

import htfi
from htfi.domain.errors import UnreadableEntry
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.ledger import open_ledger
from htfi.wiring.service.live_record import LineGroup, LiveRecord
from htfi_eval.bench.ledger_entries import json_entries
from page_run import daily_bars

NUM_FOLLOWING = 100  # more than are woken in one turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def run(folder: Path) -> Iterator[htfi.Run]:
    with htfi.open_run(folder, interval="1d", models=None) as opened:
        list(opened.feed(daily_bars(0, 40)))
        yield opened


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[LiveRecord]:
    record = LiveRecord(folder, lambda _: None)
    record.open()
    try:
        await record.caught_up()
        yield record
    finally:
        await record.close()


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "decisions.jsonl").read_bytes().splitlines()


def feed(run: htfi.Run, first: int, last: int) -> int:
    """How many decisions there are of these days."""
    return sum(1 for _ in run.feed(daily_bars(first, last)))


async def followed(record: LiveRecord, start: int, num: int) -> list[LineGroup]:
    """Groups from an index on until they have so many lines."""
    groups: list[LineGroup] = []
    async for group in record.follow(start):
        groups.append(group)
        if sum(len(one.lines) for one in groups) >= num:
            break
    return groups


def test_all_who_wait_get_the_same_group_each_line_once_and_in_order(run: htfi.Run, folder: Path) -> None:
    order: list[int] = []

    async def reader(place: int, record: LiveRecord, start: int) -> list[LineGroup]:
        groups = await followed(record, start, 2)
        order.append(place)
        return groups

    async def act() -> tuple[int, list[list[LineGroup]]]:
        async with opened(folder) as record:
            start = record.size
            reading = [asyncio.ensure_future(reader(place, record, start)) for place in range(NUM_FOLLOWING)]
            await asyncio.sleep(0)  # all wait
            assert feed(run, 40, 41) == 2
            return start, await asyncio.gather(*reading)

    start, found = asyncio.run(act())
    wanted = lines_of(folder)[start:]
    assert len(wanted) == 2
    got = [[line for group in groups for line in group.lines] for groups in found]
    assert got == [wanted] * NUM_FOLLOWING
    assert {id(group) for groups in found for group in groups} == {id(group) for group in found[0]}
    assert order == list(range(NUM_FOLLOWING))


def test_others_have_their_turn_while_many_are_woken(run: htfi.Run, folder: Path) -> None:
    """A thousand streams delay a request by a part of them, not by all."""
    turns: list[int] = []

    async def act() -> None:
        async with opened(folder) as record:
            woken = 0

            async def wait() -> None:
                nonlocal woken
                await followed(record, record.size, 1)
                woken += 1

            waiting = [asyncio.ensure_future(wait()) for _ in range(NUM_FOLLOWING)]
            await asyncio.sleep(0)
            feed(run, 40, 41)
            while woken < NUM_FOLLOWING:
                await asyncio.sleep(0)
                turns.append(woken)
            await asyncio.gather(*waiting)

    asyncio.run(act())
    between = {one for one in turns if 0 < one < NUM_FOLLOWING}
    assert len(between) >= 3


def test_stream_of_which_nothing_comes_is_told_so_again_and_again(run: htfi.Run, folder: Path) -> None:
    async def act() -> list[LineGroup]:
        async with opened(folder) as record:
            groups = record.follow(record.size, 0.01)
            found = [await anext(groups), await anext(groups)]
            asking = asyncio.ensure_future(anext_with_lines(groups))
            feed(run, 40, 41)
            return [*found, await asking]

    async def anext_with_lines(groups: AsyncIterator[LineGroup]) -> LineGroup:
        while not (group := await anext(groups)).lines:
            pass
        return group

    found = asyncio.run(act())
    assert [(one.first, len(one.lines)) for one in found[:2]] == [(found[2].first, 0)] * 2
    assert found[2].lines[0] == lines_of(folder)[found[2].first]


def test_record_that_cannot_be_read_on_is_known_up_to_there_and_names_no_newest(tmp_path: Path) -> None:
    own = [encode_entry(decode_entry(one)) for one in json_entries(5, seed=1)]
    log = open_ledger(tmp_path, origin="htfi.example/run")
    log.append([*own[:3], b"\x96\x7f" + own[3][2:], own[4]])  # a newer version wrote the fourth
    log.close()
    said: list[str] = []

    async def act() -> list[bytes]:
        record = LiveRecord(tmp_path, said.append)
        record.open()
        try:
            with pytest.raises(UnreadableEntry):
                await record.caught_up()
            with pytest.raises(UnreadableEntry):
                record.released(next(iter(record.series)))
            return [line for group in await followed(record, 0, 3) for line in group.lines]
        finally:
            await record.close()

    lines = asyncio.run(act())
    assert [msgspec.json.decode(line)["index"] for line in lines] == [0, 1, 2]
    (line,) = said
    assert line.startswith(f"{tmp_path}: entry 3 is not a decision of this version")


async def leave(task: "asyncio.Future[list[LineGroup]]") -> None:
    await asyncio.sleep(0)  # it waits
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def num_futures() -> int:
    return sum(issubclass(type(one), asyncio.Future) for one in gc.get_objects())


def test_those_who_leave_before_the_next_decision_leave_nothing(run: htfi.Run, folder: Path) -> None:
    async def act() -> int:
        async with opened(folder) as record:
            before = num_futures()
            for _ in range(NUM_FOLLOWING):
                await leave(asyncio.ensure_future(followed(record, record.size, 1)))
            return num_futures() - before

    assert asyncio.run(act()) < NUM_FOLLOWING // 10


def test_end_of_the_service_ends_those_who_wait(run: htfi.Run, folder: Path) -> None:
    async def act() -> list[list[LineGroup]]:
        async with opened(folder) as record:
            waiting = [asyncio.ensure_future(followed(record, record.size, 1)) for _ in range(NUM_FOLLOWING)]
            await asyncio.sleep(0)
            record.end_streams()
            return await asyncio.gather(*waiting)

    assert asyncio.run(act()) == [[]] * NUM_FOLLOWING

"""A stream's outbox: what many threads put in comes out once, in order, and within its bound."""

import asyncio
import threading
import time

from checks import nonempty
from htfi.adapters.grpc.stream import Outbox


def test_what_threads_put_in_comes_out_once_and_in_order() -> None:
    num_threads, num_each = 4, 150

    async def drain() -> list[bytes]:
        outbox = Outbox(asyncio.get_running_loop(), 1024)  # which two threads fill

        def put(who: int) -> None:
            for number in range(num_each):
                while not outbox.put(b"%d %d" % (who, number)):
                    time.sleep(1e-4)  # it is full: the loop that empties it needs the interpreter

        threads = [threading.Thread(target=put, args=(who,)) for who in range(num_threads)]
        for thread in threads:
            thread.start()
        taken: list[bytes] = []
        while len(taken) < num_threads * num_each:
            sealed = await asyncio.wait_for(outbox.next_frame(), 10)
            assert sealed is not None
            outbox.frame_sent(sealed)
            taken.append(sealed)
        for thread in threads:
            thread.join()
        return taken

    taken = asyncio.run(drain())
    for who in nonempty(range(num_threads)):
        mine = [sealed for sealed in taken if sealed.startswith(b"%d " % who)]
        assert mine == [b"%d %d" % (who, number) for number in range(num_each)]


def test_bytes_count_until_they_are_taken_over_and_a_closed_outbox_gives_what_it_has() -> None:
    async def act() -> None:
        outbox = Outbox(asyncio.get_running_loop(), 10)
        assert outbox.put(b"123456")
        assert not outbox.put(b"12345")
        first = await outbox.next_frame()
        assert first == b"123456"
        assert not outbox.put(b"12345")  # HTTP/2 has not taken it yet
        outbox.frame_sent(first)
        assert outbox.put(b"12345")
        outbox.close()
        assert not outbox.put(b"1")
        assert await outbox.next_frame() == b"12345"
        assert await outbox.next_frame() is None

    asyncio.run(act())


def test_whoever_waits_for_a_frame_wakes_when_it_closes() -> None:
    async def act() -> bytes | None:
        outbox = Outbox(asyncio.get_running_loop(), 10)
        waiting = asyncio.ensure_future(outbox.next_frame())
        await asyncio.sleep(0.01)
        outbox.close()
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(act()) is None

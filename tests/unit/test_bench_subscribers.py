"""The subscribers of `htfi bench service`: which event was whole when, however it came in parts."""

import socket

import pytest

from htfi_eval.bench.service.subscribers import Arrivals, ReceivedEvents


def event(index: int) -> bytes:
    return b'id: %d\nevent: decision\ndata: {"id: ":%d}\n\n' % (index, index)


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"retry: 1000\n\n")


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_events_are_found_however_the_bytes_are_cut(size: int) -> None:
    content = HEAD + chunk(event(7) + event(8)) + chunk(b": alive\n\n") + chunk(event(9))
    received, found = ReceivedEvents(1 << 12), list[tuple[int, int]]()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for begin in range(0, len(content), size):
            theirs.sendall(content[begin : begin + size])
            assert received.read(ours)
            if begin // size % 3 == 0:
                found += received.take()
        found += received.take()
    assert [index for index, _ in found] == [7, 8, 9]
    assert [at for _, at in found] == sorted(at for _, at in found)


def test_event_counts_when_its_last_byte_is_there() -> None:
    received = ReceivedEvents(1 << 12)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for part in (HEAD + event(1)[:-1], event(1)[-1:] + event(2), event(3)):
            theirs.sendall(part)
            received.read(ours)
        found = received.take()
    by_id = dict(found)
    assert by_id[1] == by_id[2] < by_id[3]


def test_end_of_a_connection_is_seen() -> None:
    received = ReceivedEvents(1 << 12)
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert not received.read(ours)


def test_subscriber_that_counts_is_the_so_manyeth_by_time() -> None:
    arrivals = Arrivals(num_subscribers=4, which=2)
    for at_ns in (40, 10, 30):
        arrivals.add(5, at_ns)
    assert (arrivals.num_whole, arrivals.at_ns) == (0, {})
    arrivals.add(5, 20)
    assert (arrivals.num_whole, arrivals.at_ns) == (1, {5: 20})

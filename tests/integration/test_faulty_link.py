"""The faulty link over real sockets: every weather does what it says, and nothing is left behind."""

import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from checks import sooner_than
from echo_server import echo_server
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi_eval.faulty_link.conditions import CLEAR, Direction, LinkConditions, LinkSchedule
from htfi_eval.faulty_link.link import FaultyLink, LinkControl
from htfi_eval.faulty_link.process import FaultyLinkProcess

SEED = 20_261
pytestmark = pytest.mark.serial  # the delays that were asked for are measured


def rtt_schedule(*steps: tuple[float, float]) -> LinkSchedule:
    """A schedule of round trips alone: (after_s, rtt_ms) each."""
    return tuple((after_s, LinkConditions(rtt_ms=rtt_ms)) for after_s, rtt_ms in steps)


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    with echo_server() as address:
        yield address


@contextlib.contextmanager
def connected(link: LinkControl) -> Iterator[socket.socket]:
    with socket.create_connection(link.address, timeout=5.0) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield one


def comes_back(one: socket.socket, data: bytes) -> bytes:
    one.sendall(data)
    back = b""
    while len(back) < len(data):
        more = one.recv(1 << 16)
        if not more:
            break
        back += more
    return back


def took_s(one: socket.socket, data: bytes = b"x" * 40) -> float:
    began = time.perf_counter()
    assert comes_back(one, data) == data
    return time.perf_counter() - began


def test_bytes_pass_unchanged_and_are_counted(echo: tuple[str, int]) -> None:
    data = np.random.Generator(np.random.PCG64(SEED)).bytes(3_000_000)
    with FaultyLink(echo, LinkConditions(rtt_ms=2, jitter_ms=1), SEED) as link:
        with connected(link) as one:
            sender = threading.Thread(target=one.sendall, args=(data,))
            sender.start()
            back = bytearray()
            while len(back) < len(data):
                back += one.recv(1 << 16)
            sender.join()
        assert back == data, link.describe()
        assert {(t.direction, t.num_bytes, t.num_bytes_arrived) for t in link.traffic()} == {
            (way, len(data), len(data)) for way in Direction
        }


def test_each_round_trip_takes_the_time_that_was_asked_for(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, LinkConditions(rtt_ms=20), SEED) as link, connected(link) as one:
        first_s = took_s(one)
        times_s = [took_s(one) for _ in range(10)]
        assert first_s >= 0.040, "the hand-shake pays a round trip as well"
        assert min(times_s) >= 0.020
        assert min(times_s) < 0.025, link.describe()


def test_weather_changes_while_bytes_flow_and_by_schedule(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, seed=SEED) as link, connected(link) as one:
        assert min(took_s(one) for _ in range(5)) < 0.02
        link.conditions = LinkConditions(rtt_ms=60)
        assert 0.06 <= min(took_s(one) for _ in range(3)) < 0.09
        link.play_schedule(rtt_schedule((0.0, 5), (0.3, 50), (0.6, 20)))
        began = time.perf_counter()
        seen: dict[float, list[float]] = {0.0: [], 0.3: [], 0.6: []}
        while (at := time.perf_counter() - began) < 0.9:
            spent = took_s(one)
            for step in seen:
                if step + 0.02 < at < step + 0.2:
                    seen[step].append(spent * 1e3)
        least = [min(times_ms) for times_ms in seen.values()]
        assert np.all(np.abs(np.array(least) - [5, 50, 20]) < 4), (least, link.describe())


def test_bandwidth_is_shared_by_all_connections(echo: tuple[str, int]) -> None:
    weather = LinkConditions(bytes_per_s=400_000, burst_bytes=10_000)
    with FaultyLink(echo, weather, SEED) as link, connected(link) as one, connected(link) as other:
        began = time.perf_counter()
        threads = [threading.Thread(target=comes_back, args=(s, b"y" * 80_000)) for s in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.perf_counter() - began > 0.34, link.describe()


def test_a_stall_holds_every_byte_and_then_lets_all_go(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, seed=SEED) as link, connected(link) as one:
        took_s(one)
        link.stall(0.3)
        assert link.conditions.is_stalled
        assert took_s(one) >= 0.28
        assert link.conditions == CLEAR
        assert took_s(one) < 0.28


def test_a_reset_is_felt_at_once_and_after_so_many_bytes(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, seed=SEED) as link:
        with connected(link) as one:
            took_s(one)
            link.reset()
            with pytest.raises(ConnectionResetError):
                one.recv(1)
        with connected(link) as one:
            took_s(one)
            link.conditions = LinkConditions(resets_after_bytes=500)
            with pytest.raises((ConnectionResetError, BrokenPipeError)):  # noqa: PT012 - any of the rounds
                for _ in range(1000):
                    comes_back(one, b"z" * 100)
                    time.sleep(0.001)
            assert "reset after 500 bytes" in link.describe()
        link.conditions = LinkConditions(resets_after_bytes=0)
        with pytest.raises(ConnectionResetError), connected(link) as one:
            one.recv(1)
        link.conditions = CLEAR
        with connected(link) as one:
            took_s(one)


def test_the_dark_swallows_bytes_and_endings_without_a_word(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, seed=SEED) as link:
        with connected(link) as one:
            took_s(one)
            link.conditions = LinkConditions(is_dark=True)
            one.sendall(b"unheard")
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.recv(1)
            link.conditions = CLEAR  # a stream with a hole stays dark
            one.sendall(b"unheard")
            with pytest.raises(TimeoutError):
                one.recv(1)
        with connected(link) as one:
            assert took_s(one) < 0.1
            link.conditions = LinkConditions(is_dark=True, only=Direction.DOWN)
            one.sendall(b"heard")
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.recv(1)
            up = [t for t in link.traffic() if t.direction is Direction.UP][-1]
            assert up.num_bytes == up.num_bytes_arrived == 45, link.describe()
        link.conditions = LinkConditions(is_dark=True)
        with connected(link) as one:
            one.sendall(b"unheard")
            one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.recv(1)


def test_corruption_flips_one_bit_of_the_byte_that_was_named(echo: tuple[str, int]) -> None:
    weather = LinkConditions(corrupts_at_byte=700, only=Direction.UP)
    with FaultyLink(echo, weather, SEED) as link, connected(link) as one:
        back = b"".join(comes_back(one, b"\0" * 100) for _ in range(10))
        changed = [(place, byte) for place, byte in enumerate(back) if byte]
        assert [place for place, _ in changed] == [700], link.describe()
        assert changed[0][1].bit_count() == 1
        assert "of byte 700 up" in link.describe()


def test_the_same_seed_corrupts_the_same_bytes_however_they_are_cut(echo: tuple[str, int]) -> None:
    seen: list[bytes] = []
    for size in (10, 1000):
        with FaultyLink(echo, LinkConditions(corrupt_rate=0.01), SEED) as link, connected(link) as one:
            seen.append(b"".join(comes_back(one, b"\0" * size) for _ in range(2000 // size)))
    assert seen[0] == seen[1]
    assert 10 <= sum(1 for byte in seen[0] if byte) <= 80


def test_a_chunk_can_come_twice(echo: tuple[str, int]) -> None:
    weather = LinkConditions(duplicate_rate=1.0, only=Direction.UP)
    with FaultyLink(echo, weather, SEED) as link, connected(link) as one:
        one.sendall(b"again")
        one.shutdown(socket.SHUT_WR)
        back = b""
        while more := one.recv(100):
            back += more
        assert back == b"againagain", link.describe()


def test_connections_overtake_each_other_but_not_themselves(echo: tuple[str, int]) -> None:
    weather = LinkConditions(rtt_ms=2, skew_ms=60, jitter_ms=5)
    with FaultyLink(echo, weather, SEED) as link, contextlib.ExitStack() as stack:
        ones = [stack.enter_context(connected(link)) for _ in range(8)]
        times_s = [took_s(one) for one in ones]
        assert max(times_s) - min(times_s) > 0.02, link.describe()
        sent = b"".join(number.to_bytes(2, "big") for number in range(300))
        for at in range(0, len(sent), 2):
            ones[0].sendall(sent[at : at + 2])
        back = b""
        while len(back) < len(sent):
            back += ones[0].recv(4096)
        assert back == sent


def test_nobody_listens_and_the_address_stays_ours(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, LinkConditions(refuses=True), SEED) as link:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(link.address, timeout=1.0)
            link.conditions = CLEAR
            with connected(link) as one:
                took_s(one)
            link.conditions = LinkConditions(refuses=True)


def test_connections_beyond_the_limit_are_reset(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, LinkConditions(max_connections=2), SEED) as link, contextlib.ExitStack() as stack:
        ones = [stack.enter_context(connected(link)) for _ in range(2)]
        for one in ones:
            took_s(one)
        with pytest.raises(ConnectionError), connected(link) as third:
            third.recv(1)
        took_s(ones[0])


def test_endings_travel_like_bytes(echo: tuple[str, int]) -> None:
    with FaultyLink(echo, LinkConditions(rtt_ms=40), SEED) as link, connected(link) as one:
        took_s(one)
        one.sendall(b"last words")
        one.shutdown(socket.SHUT_WR)
        began = time.perf_counter()
        assert one.recv(100) == b"last words"
        assert one.recv(100) == b""
        assert time.perf_counter() - began > 0.03


def test_a_target_that_is_not_there_shows_as_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    with FaultyLink(address, seed=SEED) as link:
        with pytest.raises(ConnectionError), connected(link) as one:  # it may come while still connecting
            one.recv(1)
        assert "does not answer" in link.describe()
        with echo_server() as there:
            link.set_target(there)
            with connected(link) as other:
                took_s(other)


def test_closing_in_any_weather_leaves_no_socket_and_no_thread(echo: tuple[str, int]) -> None:
    fds = Path("/proc/self/fd")
    num_before = len(list(fds.iterdir())) if fds.exists() else 0
    weathers = [
        CLEAR,
        LinkConditions(rtt_ms=5000),
        LinkConditions(is_stalled=True),
        LinkConditions(is_dark=True),
        LinkConditions(bytes_per_s=100),
    ]
    for weather in weathers:
        with sooner_than(5.0), FaultyLink(echo, weather, SEED) as link:
            ones = [socket.create_connection(link.address, timeout=1.0) for _ in range(5)]
            for one in ones:
                one.sendall(b"x" * 10_000)
        for one in ones:
            one.close()
        link.close()
        with pytest.raises(DependencyUnavailable, match="closed"):
            link.conditions = CLEAR
    assert not [t for t in threading.enumerate() if t.name == "faulty-link"]
    if fds.exists():  # the echo server keeps its sides until it ends
        assert len([fd for fd in fds.iterdir() if fd.exists()]) <= num_before + 15


def test_weather_that_cannot_be_is_refused_in_one_line() -> None:
    for wrong in ({"rtt_ms": -1}, {"corrupt_rate": 1.5}, {"bytes_per_s": 0}, {"jitter_ms": float("nan")}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            LinkConditions(**wrong)
    assert str(dataclasses.replace(CLEAR, rtt_ms=3.0, only=Direction.UP)) == "rtt_ms=3.0 only=up"


def test_a_link_in_its_own_process_is_steered_alike_and_ends_with_its_user(echo: tuple[str, int]) -> None:
    with FaultyLinkProcess(echo, LinkConditions(rtt_ms=20), SEED) as link, connected(link) as one:
        took_s(one)
        assert 0.02 <= min(took_s(one) for _ in range(3)) < 0.03
        assert link.conditions == LinkConditions(rtt_ms=20)
        link.play_schedule(rtt_schedule((0.0, 5.0)))
        time.sleep(0.05)
        assert 0.005 <= min(took_s(one) for _ in range(3)) < 0.015
        assert link.num_bytes(Direction.UP) == 7 * 40
        link.stall(0.2)
        assert took_s(one) > 0.15
        assert "rtt_ms=20" in link.describe()
        link.reset()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with pytest.raises(DependencyUnavailable, match="closed"):
        link.reset()
    with pytest.raises(DependencyUnavailable, match="cannot listen on 192"):
        FaultyLinkProcess(echo, listen=("192.0.2.1", 0))

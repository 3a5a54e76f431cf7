"""What a context cache does when its disk, file or server fail: it knows less, says so once, and holds nobody up."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from checks import sooner_than
from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.lmdb.tier import LmdbTier
from htfi.adapters.redis.tier import RedisAddress, RedisTier
from htfi.domain.errors import InvalidInput
from htfi.narrative.caching.tier import CacheEntry, EventClock
from htfi.narrative.caching.tiers import MemoryTier, OuterTier, TieredCache
from redis_server import RedisServer, redis_server

HOUR = 3_600 * 10**9
MIB = 2**20
TIMEOUT_MS = 50.0
STALL_S = 8.0  # a server that stalls does so until its test ends


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as running:
        yield running


@pytest.fixture
def told() -> list[str]:
    return []


def redis_tier(url: str, told: list[str], timeout_ms: float = TIMEOUT_MS) -> RedisTier:
    return RedisTier(RedisAddress(url, timeout_ms), told.append, wait_s=2.0)


def lmdb_tier(folder: Path, told: list[str], max_bytes: int = 4 * MIB) -> LmdbTier:
    return LmdbTier(folder, max_bytes, EventClock(), told.append)


def get(tier: LmdbTier | RedisTier, key: bytes) -> bytes | None:
    return tier.get_many([key], [("a",)])[0]


def soon(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def test_a_server_that_dies_is_a_miss_and_is_used_again_once_it_is_back(
    server: RedisServer, told: list[str]
) -> None:
    tier = redis_tier(server.url, told)
    tier.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
    assert tier.drain(5.0)
    assert get(tier, b"1") == b"x"
    server.kill()
    with sooner_than(200 * TIMEOUT_MS / 1e3):  # one look-up waits, the rest do not
        for _ in range(200):
            assert get(tier, b"1") is None
            tier.put_many([CacheEntry(b"2", b"y", HOUR, ("a",))])
            assert not tier.forget(["b"])
    server.start()
    assert soon(lambda: tier.forget(["b"]))

    def kept_again() -> bool:
        tier.put_many([CacheEntry(b"1", b"x", HOUR, ("a",)), CacheEntry(b"3", b"z", HOUR, ("b",))])
        return tier.drain(5.0) and get(tier, b"1") == b"x"

    assert soon(kept_again)
    assert get(tier, b"3") is None
    tier.close()
    assert len(told) == 1
    assert "continues without it" in told[0]


def test_a_retraction_reaches_a_server_that_was_down_when_it_came(
    server: RedisServer, told: list[str]
) -> None:
    tier, time_of_events = redis_tier(server.url, told), EventClock()
    tiers = TieredCache(MemoryTier(MIB, time_of_events), [OuterTier(tier)])
    tiers.put(b"1", b"x", HOUR, ("a",))
    tiers.flush()
    assert tier.drain(5.0)
    os.kill(server.pid, signal.SIGSTOP)
    tiers.forget(["a"])
    assert tiers.get(b"1", ("a",)) is None
    os.kill(server.pid, signal.SIGCONT)

    def gone() -> bool:
        tiers.flush()
        other = redis_tier(server.url, told, 500.0)
        found = get(other, b"1")
        other.close()
        return found is None

    assert soon(gone)
    tiers.close()


@contextmanager
def stalling(answer: bytes, pause_s: float) -> Iterator[str]:
    """A server that answers every byte of what it is told to, slowly, one byte after the other."""
    listener = socket.create_server(("127.0.0.1", 0))
    ending = threading.Event()

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            while not ending.is_set() and client.recv(65_536):
                for byte in answer:
                    client.sendall(bytes([byte]))
                    if ending.wait(pause_s):
                        return

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ending.set()
        listener.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "pause_s"), [(b"", 0.0), (b"+PONG\r\n", 0.03), (b"+PONG\r\n", 0.0), (b"*-7\r\n!?", 0.0)]
)
def test_a_server_that_stalls_or_talks_nonsense_holds_nobody_up(
    answer: bytes, pause_s: float, told: list[str]
) -> None:
    with stalling(answer, pause_s) as url:
        tier = RedisTier(RedisAddress(url, 20.0), told.append, wait_s=0.3)
        tiers = TieredCache(MemoryTier(MIB, EventClock()), [OuterTier(tier)])
        for _ in range(30):
            with sooner_than(STALL_S):
                assert tiers.get(b"1", ("a",)) is None
                tiers.forget(["b"])
                tiers.put(b"2", b"y", HOUR)
                tiers.flush()
            time.sleep(0.01)
        with sooner_than(STALL_S):
            tiers.close()


def test_a_stopped_server_costs_one_look_up_and_then_nothing(server: RedisServer, told: list[str]) -> None:
    tier = redis_tier(server.url, told, timeout_ms=30.0)
    os.kill(server.pid, signal.SIGSTOP)
    with sooner_than(1_000 * 0.03):  # what a thousand look-ups that all wait would take
        assert all(get(tier, b"1") is None for _ in range(1_000))
    os.kill(server.pid, signal.SIGCONT)
    assert soon(lambda: tier.get_many([b"1"], [()]) == [None] and tier.forget(["a"]))
    tier.close()


def test_a_full_server_keeps_what_it_has_and_is_still_asked(tmp_path: Path, told: list[str]) -> None:
    with redis_server(tmp_path / "redis", "--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as server:
        tier = redis_tier(server.url, told, 500.0)
        tier.put_many([CacheEntry(b"first", b"x", HOUR, ("a",))])
        assert tier.drain(5.0)
        tier.put_many([CacheEntry(b"%d" % k, os.urandom(100_000), HOUR, ("a",)) for k in range(60)])
        soon(lambda: bool(told), 5.0)
        assert soon(lambda: get(tier, b"first") == b"x")
        assert len(told) == 1
        assert "memory" in told[0]
        tier.close()


def test_a_wrong_password_is_told_without_showing_it(tmp_path: Path, told: list[str]) -> None:
    with redis_server(tmp_path / "redis", "--requirepass", "right") as server:
        wrong = RedisTier(RedisAddress(f"unix://:wrong@{server.socket}"), told.append, wait_s=0.5)
        assert get(wrong, b"1") is None
        wrong.close()
        assert len(told) == 1
        assert "wrong@" not in told[0]
        right = redis_tier(f"unix://:right@{server.socket}", [])
        right.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
        assert right.drain(5.0)
        assert get(right, b"1") == b"x"
        right.close()


@pytest.fixture
def behind_tls(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose certificate the authority in `certs` has signed."""
    certs = tmp_path / "certs"
    make_certificates(certs, [("localhost", CertificateRole.CLOUD)])
    make_certificates(tmp_path / "others", [("localhost", CertificateRole.CLOUD)])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "--tls-port",
        str(port),
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        str(certs / "ca.pem"),
    ]
    options += [
        "--tls-cert-file",
        str(certs / "localhost.pem"),
        "--tls-key-file",
        str(certs / "localhost.key"),
    ]
    try:
        server = RedisServer(made(tmp_path / "redis"), *options)
    except AssertionError:
        pytest.skip("this redis-server was built without TLS")
    with server:
        yield f"rediss://localhost:{port}"


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_server_behind_tls_is_used_only_with_the_certificate_of_the_named_authority(
    behind_tls: str, tmp_path: Path, told: list[str]
) -> None:
    right = RedisTier(
        RedisAddress(behind_tls, 500.0, authority=str(tmp_path / "certs" / "ca.pem")), pytest.fail
    )
    right.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
    assert right.drain(5.0)
    assert get(right, b"1") == b"x"
    right.close()
    wrong = RedisTier(
        RedisAddress(behind_tls, 500.0, authority=str(tmp_path / "others" / "ca.pem")),
        told.append,
        wait_s=0.5,
    )
    assert get(wrong, b"1") is None
    wrong.close()
    assert len(told) == 1
    assert "certificate" in told[0].lower()


def test_an_address_that_is_none_stops_the_start() -> None:
    with pytest.raises(InvalidInput, match=r"cache\.redis"):
        RedisTier(RedisAddress("redis://host:notaport"), pytest.fail)


@pytest.mark.parametrize("part", ["beginning", "middle", "all", "cut short", "text"])
def test_a_damaged_file_is_thrown_away_and_begun_anew(tmp_path: Path, told: list[str], part: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    tier = lmdb_tier(tmp_path, told)
    tier.put_many([CacheEntry(b"%d" % k, os.urandom(900), HOUR, ("a",)) for k in range(300)])
    tier.close()
    file = tmp_path / "data.mdb"
    whole = bytearray(file.read_bytes())
    match part:
        case "beginning":
            whole[: 2 * 4_096] = rng.randbytes(2 * 4_096)
        case "middle":
            for at in range(2 * 4_096, len(whole), 4_096):
                whole[at : at + 64] = rng.randbytes(64)
        case "all":
            whole[:] = rng.randbytes(len(whole))
        case "cut short":
            del whole[len(whole) // 2 :]
        case _:
            whole[:] = b"this is no database\n" * 100
    file.write_bytes(whole)
    again = lmdb_tier(tmp_path, told)
    assert get(again, b"1") is None
    again.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
    assert get(again, b"1") == b"x"
    again.close()
    assert len(told) == 1
    assert "begins again" in told[0]


def test_a_file_of_another_start_of_the_machine_that_was_not_closed_is_not_trusted(
    tmp_path: Path, told: list[str]
) -> None:
    tier = lmdb_tier(tmp_path, told)
    tier.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
    tier.close()
    (tmp_path / "opened").write_text("another start")
    again = lmdb_tier(tmp_path, told)
    assert get(again, b"1") is None
    again.close()
    assert told == []


_WRITER = """
import os, sys
from pathlib import Path
from htfi.adapters.lmdb.tier import LmdbTier
from htfi.narrative.caching.tier import CacheEntry
tier = LmdbTier(Path(sys.argv[1]), 4 * 2**20, lambda: 0, print)
number = 0
while True:
    key = b"%d" % number
    small = CacheEntry(key, key * 400, 10**15, ("a",))
    tier.put_many([small, CacheEntry(key + b"!", os.urandom(9_000), 10**15, ("b",))])
    print(number, flush=True)
    number += 1
"""


def test_a_writer_killed_at_any_moment_leaves_a_file_that_another_goes_on_with(
    tmp_path: Path, told: list[str]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    rng = random.Random(seed)
    reader = lmdb_tier(tmp_path, told)
    reader.put_many([CacheEntry(b"mine", b"x", HOUR, ("c",))])
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        wanted = rng.randrange(5, 120)
        last = next(int(line) for line in writer.stdout if int(line) >= wanted)
        writer.kill()
        writer.wait(10.0)
        writer.stdout.close()
        assert get(reader, b"%d" % last) == b"%d" % last * 400
        reader.put_many([CacheEntry(b"mine", b"x", HOUR, ("c",))])
        assert get(reader, b"mine") == b"x"
    reader.close()
    again = lmdb_tier(tmp_path, told)
    assert get(again, b"mine") == b"x"
    again.close()
    assert told == []


def test_what_one_process_has_forgotten_no_other_serves(tmp_path: Path, told: list[str]) -> None:
    tier = lmdb_tier(tmp_path, told)
    tiers = TieredCache(MemoryTier(MIB, EventClock()), [OuterTier(tier)])
    tiers.put(b"1", b"x", HOUR, ("a",))
    tiers.flush()
    assert tiers.get(b"1", ("a",)) == b"x"
    code = (
        "import sys; from pathlib import Path; from htfi.adapters.lmdb.tier import LmdbTier;"
        "t = LmdbTier(Path(sys.argv[1]), 4 * 2**20, lambda: 0, print); t.forget(['a']); t.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=30.0)
    assert tiers.get(b"1", ("a",)) is None
    tiers.put(b"1", b"x", HOUR, ("a",))
    tiers.flush()
    assert get(tier, b"1") is None
    tiers.close()
    assert told == []


def test_a_folder_that_cannot_be_written_is_told_once_and_passed_over(
    tmp_path: Path, told: list[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    tier = lmdb_tier(tmp_path / "file" / "cache", told)
    for _ in range(5):
        tier.put_many([CacheEntry(b"1", b"x", HOUR, ("a",))])
        assert get(tier, b"1") is None
        assert tier.forget(["a"])
        assert list(tier.forgotten() or ()) == []
    tier.close()
    assert len(told) == 1
    assert "continues without it" in told[0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """One MiB of its own, where the system lets us make it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can be made by root alone")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_once_and_what_is_forgotten_goes_all_the_same(
    small_disk: Path, told: list[str]
) -> None:
    tier = lmdb_tier(small_disk / "cache", told, 64 * MIB)
    tier.put_many([CacheEntry(b"first", b"x", HOUR, ("a",))])
    for k in range(60):
        tier.put_many([CacheEntry(b"%d" % k, os.urandom(50_000), HOUR, ("a",))])
    assert len(told) == 1
    assert get(tier, b"first") == b"x"
    (small_disk / "rest").write_bytes(b"")
    with suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4_096))
    assert tier.forget(["a"])
    assert get(tier, b"first") is None
    tier.close()
    again = lmdb_tier(small_disk / "cache", told, 64 * MIB)
    assert get(again, b"first") is None
    again.close()
    assert len(told) <= 2

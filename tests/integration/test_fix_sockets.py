"""FIX sessions over sockets: our initiator and our acceptor, TLS, reconnection, identities, the journal's faults."""

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from fix_peer import CLIENT, VENUE, Recorder, listen, order_fields, runner_of, until
from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.fix.connections import Acceptor, Initiator
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint, FixTls, read_endpoint, tls_context
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.events import NotSent
from htfi.wiring.fix import open_fix_session


def endpoint(port: int, **changes: object) -> FixEndpoint:
    return replace(FixEndpoint(CLIENT, "127.0.0.1", port, reconnect_s=0.02, max_reconnect_s=0.05), **changes)


@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
def test_orders_are_answered_over_a_socket(tmp_path: Path, version: str) -> None:
    async def exchange() -> tuple[Recorder, Recorder]:
        venue, client = Recorder(answers=True), Recorder()
        server = runner_of(tmp_path, replace(VENUE, version=version), venue)
        acceptor, port = await listen(server)
        runner = runner_of(tmp_path, replace(CLIENT, version=version), client)
        client.then = lambda one: [one.send("D", order_fields(f"O{n}")) for n in range(50)]
        initiator = Initiator(endpoint(port), runner)
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: len(client.messages) == 50, "50 reports")
        initiator.close()
        await running
        await acceptor.close()
        return venue, client

    venue, client = asyncio.run(exchange())
    assert [message.get(11) for message in client.messages] == [f"O{n}" for n in range(50)]
    assert client.ends == ["logged out"]
    assert venue.ends == ["logged out"]


def test_order_is_not_sent_before_the_logon(tmp_path: Path) -> None:
    runner = runner_of(tmp_path, CLIENT, Recorder())
    assert runner.send("D", order_fields("early")) == NotSent("D", "the session is disconnected")
    assert runner.next_out == 1


def test_what_a_lost_connection_swallowed_is_sent_again(tmp_path: Path) -> None:
    async def exchange() -> tuple[Recorder, list[str]]:
        venue, client = Recorder(), Recorder()
        server = runner_of(tmp_path, VENUE, venue)
        acceptor, port = await listen(server)
        runner = runner_of(tmp_path, CLIENT, client)
        initiator = Initiator(endpoint(port), runner)
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1 and server.is_logged_on, "the logon")
        (accepted,) = acceptor.connections
        assert accepted._transport is not None
        accepted._transport.pause_reading()
        for number in range(5):
            runner.send("D", order_fields(f"O{number}"))
        accepted._transport.abort()
        await until(lambda: len(venue.messages) == 5, "5 orders after the second logon")
        initiator.close()
        await running
        await acceptor.close()
        return venue, [message.get(43) for message in venue.messages]

    venue, flags = asyncio.run(exchange())
    assert [message.get(11) for message in venue.messages] == [f"O{n}" for n in range(5)]
    assert flags == ["Y"] * 5
    assert venue.num_logons == 2


def test_second_connection_of_one_identity_is_refused(tmp_path: Path) -> None:
    async def exchange() -> bytes:
        venue, client = Recorder(), Recorder()
        server = runner_of(tmp_path, VENUE, venue)
        acceptor, port = await listen(server)
        initiator = Initiator(endpoint(port), runner_of(tmp_path, CLIENT, client))
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1, "the logon")
        other = runner_of(tmp_path / "other", CLIENT, Recorder())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        class Pipe:
            def write(self, data: bytes) -> None:
                writer.write(data)

            def close(self) -> None:
                writer.close()

        other.connect(Pipe())
        answer = await reader.read()
        writer.close()
        assert server.is_logged_on
        initiator.close()
        await running
        await acceptor.close()
        return answer

    assert asyncio.run(exchange()) == b""


def test_second_process_of_one_identity_is_refused(tmp_path: Path) -> None:
    journal = MessageJournal(tmp_path)
    with pytest.raises(DependencyUnavailable, match="another process owns this FIX session"):
        MessageJournal(tmp_path)
    journal.close()
    MessageJournal(tmp_path).close()


def test_acceptor_survives_what_is_no_fix(tmp_path: Path) -> None:
    async def exchange() -> int:
        venue = Recorder()
        server = runner_of(tmp_path, replace(VENUE, logon_timeout_s=0.2), venue)
        acceptor, port = await listen(server)
        num_closed = 0
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"8=FIX.4.4\x019=99999999\x01",
            b"",
            b"\x00" * 20_000,
            b"8=FIX.4.4\x01" * 2_000,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            try:
                num_closed += await asyncio.wait_for(reader.read(), 5.0) == b""
            except ConnectionResetError:
                num_closed += 1
            writer.close()
        assert not server.is_connected
        await acceptor.close()
        return num_closed

    assert asyncio.run(exchange()) == 5


def test_tls_connects_by_certificates_and_refuses_others(tmp_path: Path) -> None:
    ours, foreign = tmp_path / "ours", tmp_path / "foreign"
    for folder in (ours, foreign):
        make_certificates(folder, [("localhost", CertificateRole.CLOUD), ("client", CertificateRole.EDGE)])

    def tls(folder: Path, name: str, authorities: Path = ours) -> FixTls:
        return FixTls(
            str(folder / f"{name}.pem"),
            str(folder / f"{name}.key"),
            str(authorities / "ca.pem"),
            server_name="localhost",
        )

    problems: list[str] = []

    async def exchange() -> tuple[int, list[int]]:
        client = Recorder()
        server = runner_of(tmp_path, VENUE, Recorder())
        acceptor = Acceptor([server], tls(ours, "localhost"))
        port = await acceptor.listen("127.0.0.1", 0)
        strangers: list[int] = []
        for name, wrong in (("a", tls(foreign, "client")), ("b", tls(ours, "client", foreign)), ("c", None)):
            stranger = Recorder()
            runner = runner_of(tmp_path / name, CLIENT, stranger)
            initiator = Initiator(endpoint(port, tls=wrong), runner)
            running = asyncio.ensure_future(initiator.run())
            await asyncio.sleep(0.15)
            initiator.close()
            await running
            strangers.append(stranger.num_logons)
            problems.append(initiator.problem or stranger.ends[0])
        initiator = Initiator(endpoint(port, tls=tls(ours, "client")), runner_of(tmp_path, CLIENT, client))
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1, "the logon by TLS")
        initiator.close()
        await running
        await acceptor.close()
        return client.num_logons, strangers

    assert asyncio.run(exchange()) == (1, [0, 0, 0])
    assert "before the logon: check sender, target, TLS and clock" in problems[0]  # we are not known there
    assert problems[1].startswith("its certificate does not hold: ")  # the acceptor's
    assert "before the logon: check sender, target, TLS and clock" in problems[2]


@pytest.mark.parametrize(
    ("certificate", "key", "authorities", "what"),
    [
        (
            "client.pem",
            "client.key",
            "none.pem",
            "fix.tls.authorities: .*none.pem is not there: check the path",
        ),
        (
            "client.pem",
            "localhost.key",
            "ca.pem",
            "fix.tls.key: .*localhost.key is not the key of .*client.pem",
        ),
        ("client.key", "client.key", "ca.pem", "fix.tls: certificate, key or authorities cannot be used"),
    ],
)
def test_tls_files_that_do_not_fit_are_one_line(
    tmp_path: Path, certificate: str, key: str, authorities: str, what: str
) -> None:
    make_certificates(tmp_path, [("localhost", CertificateRole.CLOUD), ("client", CertificateRole.EDGE)])
    files = [str(tmp_path / name) for name in (certificate, key, authorities)]
    with pytest.raises(InvalidInput, match=what):
        tls_context(FixTls(*files), is_acceptor=False)


def test_full_disk_sends_nothing_and_the_numbers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def exchange() -> tuple[Recorder, int]:
        venue, client = Recorder(), Recorder()
        server = runner_of(tmp_path, VENUE, venue)
        acceptor, port = await listen(server)
        runner = runner_of(tmp_path, CLIENT, client)
        initiator = Initiator(endpoint(port), runner)
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1, "the logon")
        runner.send("D", order_fields("before"))
        await until(lambda: len(venue.messages) == 1, "the first order")
        number = runner.next_out
        with monkeypatch.context() as full:

            def write(descriptor: int, data: bytes) -> int:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            full.setattr("htfi.adapters.fix.journal.os.write", write)
            with pytest.raises(DependencyUnavailable, match="No space left on device: nothing was sent"):
                runner.send("D", order_fields("while full"))
        assert runner.next_out == number
        await until(lambda: client.num_logons == 2, "the second logon")
        runner.send("D", order_fields("after"))
        await until(lambda: len(venue.messages) == 2, "the last order")
        initiator.close()
        await running
        await acceptor.close()
        return venue, number

    venue, _ = asyncio.run(exchange())
    assert [message.get(11) for message in venue.messages] == ["before", "after"]


def test_step_of_the_clock_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def exchange() -> list[str]:
        client = Recorder()
        server = runner_of(tmp_path, replace(VENUE, max_clock_error_s=86_400.0), Recorder())
        acceptor, port = await listen(server)
        runner = runner_of(tmp_path, replace(CLIENT, max_clock_error_s=86_400.0), client)
        initiator = Initiator(endpoint(port), runner)
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1, "the logon")
        import time

        wall = time.time_ns
        monkeypatch.setattr("htfi.adapters.fix.runner.time.time_ns", lambda: wall() + 3_600_000_000_000)
        runner._on_timer()
        await asyncio.sleep(0.03)
        ends = list(client.ends)
        initiator.close()
        await running
        await acceptor.close()
        return ends

    assert asyncio.run(exchange()) == []


def test_settings_are_read_from_one_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n")
    path = tmp_path / "venue.toml"
    path.write_text(
        'host = "venue.example"\nport = 9880\npassword_file = "secret"\n[session]\nsender = "HTFI"\ntarget = "XNYS"\n'
        'version = "FIX.5.0SP2"\nheartbeat_s = 10\n[tls]\nauthorities = "ca.pem"\n'
    )
    read = read_endpoint(path)
    assert read.session == FixSession("HTFI", "XNYS", "FIX.5.0SP2", heartbeat_s=10, password="open sesame")
    assert read.journal == str(tmp_path / "fix-HTFI-XNYS")
    assert read.tls == FixTls(authorities=str(tmp_path / "ca.pem"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port = 99999\n[session]", "fix.port must be at least 0 and at most 65,535"),
        ("portt = 1\n[session]", "fix: unknown key 'portt': the keys are session, host, port"),
        ('[session]\nsender = "A"\ntarget = "B"\nheartbeat = 1', "did you mean 'heartbeat_s'?"),
        ('[session]\nsender = ""\ntarget = "B"', "fix.session.sender must be 1 to 64 long"),
        ('[session]\nsender = "A"\ntarget = "B"\nversion = "FIX.9"', "fix.version is 'FIX.9'"),
        ('[session]\nsender = "A"\ntarget = "B"\npassword = "x"', "name a file with it in password_file"),
        ("port = ", "is no TOML"),
        ("port = 1", "[session] is missing"),
        ('port = "x"\n[session]', "Expected `int`"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "venue.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_endpoint(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_closed_while_it_connects_it_does_not_stay(tmp_path: Path) -> None:
    async def exchange() -> bool:
        acceptor, port = await listen(runner_of(tmp_path, VENUE, Recorder()))
        runner = runner_of(tmp_path, CLIENT, Recorder())
        initiator = Initiator(endpoint(port), runner)
        running = asyncio.ensure_future(initiator.run())
        await asyncio.sleep(0)
        initiator.close()
        await asyncio.wait_for(running, 5.0)
        await acceptor.close()
        return runner.is_connected

    assert asyncio.run(exchange()) is False


class Connection:
    """A connection that goes nowhere."""

    def __init__(self) -> None:
        self.is_closed = False

    def write(self, data: bytes) -> None: ...

    def close(self) -> None:
        self.is_closed = True


def test_reset_that_the_disk_refuses_changes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MessageJournal(tmp_path, sync=False)
    journal.add_sent(4, b"order")
    journal.flush()
    runner = SessionRunner(replace(CLIENT, reset_on_logon=True), journal, Recorder())

    def refuse(path: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "rename", refuse)
    connection = Connection()
    with pytest.raises(DependencyUnavailable, match="cannot be renamed: No space left on device"):
        runner.connect(connection)
    assert connection.is_closed
    assert (runner.next_out, runner.next_in, journal.sent(4)) == (5, 1, b"order")


def test_initiator_of_a_file_logs_on(tmp_path: Path) -> None:
    async def exchange() -> tuple[int, bool]:
        client = Recorder()
        acceptor = Acceptor([open_fix_session(VENUE, tmp_path / "venue", Recorder(), sync=False)])
        port = await acceptor.listen("127.0.0.1", 0)
        path = tmp_path / "client.toml"
        path.write_text(f'port = {port}\nsync = false\n[session]\nsender = "HTFI"\ntarget = "VENUE"\n')
        endpoint = read_endpoint(path)
        runner = open_fix_session(endpoint.session, Path(endpoint.journal), client, sync=endpoint.sync)
        initiator = Initiator(endpoint, runner)
        running = asyncio.ensure_future(initiator.run())
        await until(lambda: client.num_logons == 1, "the logon")
        initiator.close()
        await running
        await acceptor.close()
        return client.num_logons, (tmp_path / "fix-HTFI-VENUE" / "messages.bin").is_file()

    assert asyncio.run(exchange()) == (1, True)

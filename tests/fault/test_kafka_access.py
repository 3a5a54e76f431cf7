"""Credentials and TLS of Kafka: what is missing or wrong is one line without a secret."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bus_certificate import made_certificate
from htfi.adapters.kafka.address import connect_options, read_address
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable
from htfi.wiring.bus import open_decision_bus
from kafka_broker import KafkaBroker

LOCAL, REMOTE, OVER_TLS = "kafka://127.0.0.1/T", "kafka://bus.example/T", "kafka+tls://bus.example:93,b:94/T"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "PASSWORD", "MECHANISM", "CA", "CERT", "KEY"):
        monkeypatch.delenv(f"KAFKA_{name}", raising=False)


def test_credentials_go_to_another_machine_over_tls_only() -> None:
    named = {"KAFKA_USER": "me", "KAFKA_PASSWORD": "hidden", "KAFKA_MECHANISM": "SCRAM-SHA-512"}
    with pytest.raises(InvalidInput, match="over TLS only") as caught:
        connect_options(read_address(REMOTE, ()), named)
    assert "hidden" not in str(caught.value)
    options = connect_options(read_address(OVER_TLS, ()), named)
    assert options["security_protocol"] == "SASL_SSL"
    assert options["bootstrap_servers"] == ["bus.example:93", "b:94"]
    assert (options["sasl_mechanism"], options["sasl_plain_password"]) == ("SCRAM-SHA-512", "hidden")
    assert connect_options(read_address(LOCAL, ()), named)["security_protocol"] == "SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"KAFKA_CA": "/nowhere.pem"}, r"KAFKA_CA names no file: /nowhere\.pem"),
        ({"KAFKA_USER": "me", "KAFKA_MECHANISM": "GSSAPI"}, "KAFKA_MECHANISM is 'GSSAPI'"),
    ],
)
def test_what_cannot_be_used_is_named(named: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        connect_options(read_address(LOCAL, ()), named)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_password_that_is_refused_is_one_line(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_USER", "me")
    monkeypatch.setenv("KAFKA_PASSWORD", "hidden")
    monkeypatch.setenv("KAFKA_MECHANISM", mechanism)
    with KafkaBroker("--authentication") as broker, pytest.raises(BusUnavailable) as caught:
        open_decision_bus(f"{broker.url}/D").open("log")
    assert str(caught.value).startswith(broker.url)
    assert "hidden" not in str(caught.value)


def test_tls_checks_whose_certificate_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = made_certificate(tmp_path)
    with tls_before_a_broker(certificate, key) as server:
        url = f"kafka+tls://{server}/D?transactions=no"
        with pytest.raises(BusUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            open_decision_bus(url).open("log")
        monkeypatch.setenv("KAFKA_CA", str(certificate))
        bus = open_decision_bus(url)
        assert bus.open("log") == 0
        bus.close()


@contextmanager
def tls_before_a_broker(certificate: Path, key: Path) -> Iterator[str]:
    """A broker behind a socket that speaks TLS; its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    broker_at: list[str] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = broker_at[0].partition(":")
        behind_reader, behind_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pipe(reader, behind_writer), pipe(behind_reader, writer), return_exceptions=True)

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with KafkaBroker(advertised=address) as broker:
        broker_at.append(broker.server)
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield address
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

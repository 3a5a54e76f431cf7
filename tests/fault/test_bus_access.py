"""Credentials and TLS of a bus: what is missing or wrong is one line without a secret."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bus_certificate import made_certificate
from htfi.adapters.nats.address import connect_options, read_address
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.messages import BusUnavailable
from htfi.wiring.bus import open_decision_bus
from nats_server import NatsServer

SEED = b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"  # of the documentation of nkeys
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "PASSWORD", "TOKEN", "CREDS", "NKEY", "CA", "CERT", "KEY"):
        monkeypatch.delenv(f"NATS_{name}", raising=False)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[NatsServer]:
    settings = f"authorization {{ users: [{{user: me, password: hidden}}, {{nkey: {PUBLIC}}}] }}\n"
    with NatsServer(tmp_path / "nats", settings=settings) as server:
        yield server


def test_a_password_is_asked_for_and_taken(guarded: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BusUnavailable, match=r"(?i)authorization violation|check the credentials"):
        open_decision_bus(f"{guarded.url}/D").open("log")
    monkeypatch.setenv("NATS_USER", "me")
    monkeypatch.setenv("NATS_PASSWORD", "wrong-hidden")
    with pytest.raises(BusUnavailable) as caught:
        open_decision_bus(f"{guarded.url}/D").open("log")
    assert "hidden" not in str(caught.value)
    monkeypatch.setenv("NATS_PASSWORD", "hidden")
    bus = open_decision_bus(f"{guarded.url}/D")
    assert bus.open("log") == 0
    bus.close()


def test_an_nkey_signs(guarded: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seed").write_bytes(SEED)
    monkeypatch.setenv("NATS_NKEY", str(tmp_path / "seed"))
    bus = open_decision_bus(f"{guarded.url}/D")
    assert bus.open("log") == 0
    bus.close()


def test_tls_checks_whose_certificate_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = made_certificate(tmp_path)
    settings = f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n'
    with NatsServer(tmp_path / "nats", settings=settings) as server:
        url = f"nats+tls://127.0.0.1:{server.port}/D"
        with pytest.raises(BusUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            open_decision_bus(url).open("log")
        monkeypatch.setenv("NATS_CA", str(certificate))
        bus = open_decision_bus(url)
        assert bus.open("log") == 0
        bus.close()


def test_credentials_go_to_another_machine_over_tls_only() -> None:
    address = read_address("nats://bus.example/D", ())
    with pytest.raises(InvalidInput, match="over TLS only"):
        connect_options(address, {"NATS_TOKEN": "hidden"})
    over_tls = read_address("nats+tls://bus.example/D", ())
    assert connect_options(over_tls, {"NATS_TOKEN": "hidden"})["token"] == "hidden"


def test_a_file_that_is_missing_is_named() -> None:
    address = read_address("nats://127.0.0.1/D", ())
    with pytest.raises(InvalidInput, match=r"NATS_CREDS names no file: /nowhere\.creds"):
        connect_options(address, {"NATS_CREDS": "/nowhere.creds"})

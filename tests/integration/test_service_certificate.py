"""TLS of `htfi serve --service`: keys go encrypted or not at all, and a new certificate ends no stream."""

import datetime
import ipaddress
import signal
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

import forked
from htfi.apps.service.certificate import ServerCertificate
from htfi.domain.errors import InvalidInput
from htfi.tenancy.config import SERVICE_FILE
from service_process import ServiceProcess
from tenant_service import issue, record_run, until


def write_certificate(folder: Path, name: str) -> x509.Certificate:
    """chain.pem and key.pem of a self-signed certificate, the key first, as some tools do."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for file, data in (("key.pem", pem), ("chain.pem", made.public_bytes(Encoding.PEM))):
        draft = folder / f"{file}.new"
        draft.write_bytes(data)
        draft.replace(folder / file)
    return made


def shown_serial(port: int) -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secure:
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


def stream_lines(secure: ssl.SSLSocket, until_text: bytes) -> bytes:
    read = b""
    while until_text not in read:
        part = secure.recv(65_536)
        assert part, "the stream has ended"
        read += part
    return read


@pytest.mark.slow
@pytest.mark.parametrize("is_by_signal", [True, False])
def test_new_certificate_ends_no_stream(tmp_path: Path, is_by_signal: bool) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    (folder / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    record_run(folder / "acme", ("ACME",))
    key, _ = issue(folder, "acme")
    first = write_certificate(folder, "first")
    trusting = ssl.create_default_context(cadata=first.public_bytes(Encoding.PEM).decode())
    files = ("--certificate", str(folder / "chain.pem"), "--key", str(folder / "key.pem"))
    with ServiceProcess("--service", str(folder), *files, tls=trusting) as service:
        assert service.url.startswith("https://")
        headers = {"Authorization": f"Bearer {key}"}
        size = service.client.get("/v1/decisions", headers=headers).json()["items"][0]["index"] + 1
        plain = socket.create_connection(("127.0.0.1", service.port), timeout=20.0)
        with trusting.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            request = f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"
            stream.sendall(request.encode())
            stream_lines(stream, b"retry")
            assert shown_serial(service.port) == first.serial_number
            second = write_certificate(folder, "second")
            if is_by_signal:
                service.process.send_signal(signal.SIGHUP)
            until(lambda: shown_serial(service.port) == second.serial_number)
            record_run(folder / "acme", ("ACME",), num_days=42)
            assert b"id: %d\n" % size in stream_lines(stream, b"id: %d\n" % size)
            (folder / "chain.pem").write_text("broken", encoding="utf-8")
            service.process.send_signal(signal.SIGHUP)
            assert shown_serial(service.port) == second.serial_number
        cookie = service.client.post("/v1/session", json={"key": key})  # on the connection from before
        assert cookie.headers["set-cookie"].startswith("__Host-htfi_session=")
        assert "secure" in cookie.headers["set-cookie"].lower()


def test_certificate_that_does_not_fit_its_key_changes_nothing(tmp_path: Path) -> None:
    write_certificate(tmp_path, "one")
    held = ServerCertificate(tmp_path / "chain.pem", tmp_path / "key.pem")
    chain = (tmp_path / "chain.pem").read_bytes()
    write_certificate(tmp_path, "two")
    (tmp_path / "chain.pem").write_bytes(chain)
    with pytest.raises(InvalidInput, match="--certificate"):
        held.reload()
    with pytest.raises(InvalidInput, match="No such file"):
        ServerCertificate(tmp_path / "none.pem", tmp_path / "key.pem")


def test_keys_are_not_sent_in_clear_over_a_network(tmp_path: Path) -> None:
    (tmp_path / SERVICE_FILE).write_text('[tenants.acme]\nrun = "acme"\n', encoding="utf-8")
    command = [*forked.HTFI, "serve", "--service", str(tmp_path), "--listen", "0.0.0.0:0"]
    done = forked.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "keys would be sent in clear" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1

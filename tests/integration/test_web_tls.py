"""Over HTTPS a feed is read from a server whose certificate holds, and from no other."""

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from htfi.adapters.feeds import rate_limits as polite
from htfi.pipeline.intake import spec
from web_documents import rss, rss_item
from web_feed import listen, set_aside, take, web_feed

BODY = rss(rss_item(2, body="b" * 200_000), rss_item(1))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One for 127.0.0.1 that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "feed")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "cert.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.fixture
def served(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[int]]]:
    """The server's address, and the ports that asked it."""
    monkeypatch.setattr(polite, "HOST_INTERVAL_S", 0.01)
    monkeypatch.setattr(spec, "MIN_EVERY_NS", 1)
    ports: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None: ...

    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/rss", ports
    server.shutdown()
    thread.join()
    server.server_close()


def mapping(url: str) -> str:
    return f'[[source]]\nname = "web"\nurl = "{url}"\nformat = "rss"\nevery = "100ms"'


def test_a_certificate_that_holds_is_trusted_and_its_connection_kept(
    tmp_path: Path, certificate: Path, served: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    url, ports = served
    with web_feed(tmp_path, mapping=mapping(url)) as feed:
        assert [item.id for item in take(feed, 2)] == ["wire-1", "wire-2"]
        listen(feed, 0.6)
    assert len(ports) >= 3
    assert len(set(ports)) == 1


def test_a_certificate_of_nobody_we_trust_is_refused(tmp_path: Path, served: tuple[str, list[int]]) -> None:
    with web_feed(tmp_path, mapping=mapping(served[0])) as feed:
        assert listen(feed, 0.5) == []
    rows = set_aside(tmp_path)
    assert [row["reason"] for row in rows] == ["unreachable"]
    assert "certificate verify failed" in rows[0]["detail"]
    assert served[1] == []

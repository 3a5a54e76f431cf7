"""Who a verified certificate is, what is wrong with one, and the bounds that a transport accepts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from htfi.adapters.certs.authority import CertificateRole, make_certificates
from htfi.adapters.grpc.dialler import certificate_fault
from htfi.adapters.grpc.library import TransportLimits
from htfi.adapters.grpc.tls import TlsFiles, dns_names, peer_name, read_identity
from htfi.domain.errors import InvalidInput


@pytest.mark.parametrize(
    ("common", "alternative", "name"),
    [
        (["edge1"], ["edge1"], "edge1"),
        (["edge1"], ["other", "edge1"], "edge1"),
        (["HTFI"], ["edge1"], "edge1"),
        ([], ["edge1"], "edge1"),
        (["edge1"], [], None),  # what no client would accept of a server
        (["edge1"], ["edge2", "edge3"], None),
        ([], ["edge1", "edge2"], None),
        ([], [], None),
    ],
)
def test_a_peer_is_the_one_name_that_its_certificate_says(
    common: list[str], alternative: list[str], name: str | None
) -> None:
    auth = {
        "x509_common_name": [value.encode() for value in common],
        "x509_subject_alternative_name": [value.encode() for value in alternative],
    }
    assert peer_name(auth) == name
    assert peer_name({}) is None


def test_each_fault_of_a_clouds_certificate_has_its_words(tmp_path: Path) -> None:
    nodes = (
        ("cloud1", CertificateRole.CLOUD),
        ("cloud2", CertificateRole.CLOUD),
        ("edge1", CertificateRole.EDGE),
    )
    make_certificates(tmp_path / "now", nodes)
    make_certificates(tmp_path / "other", nodes[:1])
    now = datetime.now(UTC)
    make_certificates(tmp_path / "old", nodes[:1], num_days=1, now=now - timedelta(days=9))
    make_certificates(tmp_path / "new", nodes[:1], num_days=1, now=now + timedelta(days=9))

    def fault(folder: str, node: str, dialled: str = "cloud1", authority: str = "") -> str:
        certificate = x509.load_pem_x509_certificate((tmp_path / folder / f"{node}.pem").read_bytes())
        trusted = (tmp_path / (authority or folder) / "ca.pem").read_bytes()
        return certificate_fault(certificate, dialled, trusted)

    assert fault("now", "cloud1") == ""
    assert fault("other", "cloud1", authority="now") == "certificate of cloud1 is signed by another authority"
    assert fault("old", "cloud1") == f"certificate of cloud1 expired on {now - timedelta(days=8):%Y-%m-%d}"
    assert fault("new", "cloud1").startswith("certificate of cloud1 is not valid before ")
    assert fault("now", "cloud2") == "the certificate names cloud2, not cloud1"
    assert fault("now", "edge1", "edge1") == "certificate of edge1 is an edge's, not a server's"


def test_an_identity_that_is_not_valid_yet_asks_for_the_clock(tmp_path: Path) -> None:
    make_certificates(tmp_path, [("edge1", CertificateRole.EDGE)], now=datetime.now(UTC) + timedelta(days=2))
    files = TlsFiles(tmp_path / "ca.pem", tmp_path / "edge1.pem", tmp_path / "edge1.key")
    with pytest.raises(InvalidInput, match=r"ca\.pem is not valid before .*: check this machine's clock"):
        read_identity(files, "edge1", listens=False)


def test_a_clock_two_minutes_behind_takes_a_new_certificate(tmp_path: Path) -> None:
    make_certificates(
        tmp_path, [("edge1", CertificateRole.EDGE)], now=datetime.now(UTC) + timedelta(minutes=2)
    )
    files = TlsFiles(tmp_path / "ca.pem", tmp_path / "edge1.pem", tmp_path / "edge1.key")
    assert dns_names(read_identity(files, "edge1", listens=False).certificate) == ["edge1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"outbox_bytes": 1000},
        {"inbox_bytes": 1000},
        {"tick_ms": 0.0},
        {"first_redial_s": 0.0},
        {"first_redial_s": 3.0},
        {"dial_s": 0.0},
        {"num_streams": 0},
    ],
)
def test_bounds_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        TransportLimits(**wrong)  # pyright: ignore[reportArgumentType]

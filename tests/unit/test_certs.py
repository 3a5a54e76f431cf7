"""Certificates in files: what is made, kept, renewed, refused; and the command that makes them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from htfi.adapters.certs.authority import (
    CertificateAction,
    CertificateRole,
    list_certificates,
    make_certificates,
)
from htfi.apps.cli.certs import command
from htfi.domain.errors import InvalidInput

BOTH = (("cloud1", CertificateRole.CLOUD), ("edge1", CertificateRole.EDGE))


def _certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _purposes(path: Path) -> set[x509.ObjectIdentifier]:
    return set(_certificate(path).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_folder_holds_an_authority_and_a_pair_for_each_node(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "tls", BOTH, num_days=30)
    folder = tmp_path / "tls"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["ca.key", "ca.pem", "cloud1.key", "cloud1.pem", "edge1.key", "edge1.pem"]
    assert [(one.action, one.certificate.fault) for one in made] == [(CertificateAction.MADE, "")] * 2
    for path in folder.glob("*.key"):
        assert path.stat().st_mode & 0o777 == 0o600
    for name in ("cloud1", "edge1"):
        certificate = _certificate(folder / f"{name}.pem")
        certificate.verify_directly_issued_by(_certificate(folder / "ca.pem"))
        names_in_it = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names_in_it.get_values_for_type(x509.DNSName) == [name]
        assert certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(days=30)


def test_an_edge_may_be_a_client_only(tmp_path: Path) -> None:
    make_certificates(tmp_path, BOTH)
    assert _purposes(tmp_path / "edge1.pem") == {ExtendedKeyUsageOID.CLIENT_AUTH}
    assert _purposes(tmp_path / "cloud1.pem") == {
        ExtendedKeyUsageOID.CLIENT_AUTH,
        ExtendedKeyUsageOID.SERVER_AUTH,
    }


def test_what_is_there_is_kept_and_new_nodes_join_the_same_authority(tmp_path: Path) -> None:
    make_certificates(tmp_path, BOTH)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    made = make_certificates(tmp_path, (*BOTH, ("edge2", CertificateRole.EDGE)))
    assert [one.action for one in made] == [
        CertificateAction.KEPT,
        CertificateAction.KEPT,
        CertificateAction.MADE,
    ]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    _certificate(tmp_path / "edge2.pem").verify_directly_issued_by(_certificate(tmp_path / "ca.pem"))


def test_renewal_replaces_the_certificate_and_keeps_the_key(tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=60)
    make_certificates(tmp_path, BOTH, num_days=30, now=long_ago)
    assert [one.fault for one in list_certificates(tmp_path)[1]] == ["expired", "expired"]
    key = (tmp_path / "edge1.key").read_bytes()
    (made,) = make_certificates(tmp_path, BOTH[1:], renew=True)
    assert (made.action, made.certificate.fault) == (CertificateAction.RENEWED, "")
    assert (tmp_path / "edge1.key").read_bytes() == key
    assert [one.fault for one in list_certificates(tmp_path)[1]] == ["expired", ""]


def test_a_node_does_not_change_its_role_unasked(tmp_path: Path) -> None:
    make_certificates(tmp_path, BOTH)
    with pytest.raises(InvalidInput, match=r"edge1\.pem is for an edge: give --renew to make it a cloud's"):
        make_certificates(tmp_path, [("edge1", CertificateRole.CLOUD)])
    (made,) = make_certificates(tmp_path, [("edge1", CertificateRole.CLOUD)], renew=True)
    assert made.certificate.role is CertificateRole.CLOUD


def test_no_certificate_outlives_its_authority(tmp_path: Path) -> None:
    nearly_over = datetime.now(UTC) - timedelta(days=3640)
    make_certificates(tmp_path, BOTH[:1], num_days=10, now=nearly_over)
    make_certificates(tmp_path, BOTH[1:], num_days=365)
    until, (_, edge) = list_certificates(tmp_path)
    assert edge.until == until
    with pytest.raises(InvalidInput, match="begin a new folder"):
        make_certificates(
            tmp_path, [("edge2", CertificateRole.EDGE)], now=datetime.now(UTC) + timedelta(days=400)
        )


@pytest.mark.parametrize("name", ["", "Edge", "../edge", "a b", "edge#1", "-edge", "ca", "a..b", "x" * 64])
def test_a_name_that_cannot_be_one_is_refused_and_nothing_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="node"):
        make_certificates(tmp_path / "tls", [("cloud1", CertificateRole.CLOUD), (name, CertificateRole.EDGE)])
    assert not (tmp_path / "tls").exists()


def test_damaged_and_strange_files_are_named(tmp_path: Path) -> None:
    make_certificates(tmp_path / "one", BOTH)
    make_certificates(tmp_path / "two", BOTH)
    (tmp_path / "one" / "edge1.pem").write_bytes((tmp_path / "two" / "edge1.pem").read_bytes())
    (tmp_path / "one" / "cloud1.key").unlink()
    faults = {one.name: one.fault for one in list_certificates(tmp_path / "one")[1]}
    assert faults == {"cloud1": "its key is not here", "edge1": "signed by another authority"}
    (tmp_path / "one" / "edge1.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\nnonsense\n")
    with pytest.raises(InvalidInput, match=r"edge1\.pem is not a PEM certificate"):
        list_certificates(tmp_path / "one")
    (tmp_path / "two" / "ca.key").unlink()
    with pytest.raises(InvalidInput, match=r"ca\.key is missing"):
        make_certificates(tmp_path / "two", [("edge2", CertificateRole.EDGE)])


def test_the_command_makes_lists_and_says_what_it_needs(tmp_path: Path) -> None:
    run = CliRunner()
    folder = str(tmp_path / "tls")
    made = run.invoke(command, [folder, "--cloud", "cloud1", "--edge", "edge1", "--days", "90"])
    assert made.exit_code == 0, made.output
    assert "made    cloud1" in made.output
    shown = run.invoke(command, ["show", folder])
    assert [line.split()[:3] for line in shown.output.splitlines()] == [
        ["ca", "authority", "3650"],
        ["cloud1", "cloud", "90"],
        ["edge1", "edge", "90"],
    ]
    assert run.invoke(command, [folder]).exit_code == 2
    assert "Make and list the certificates" in run.invoke(command, ["--help"]).output
    assert isinstance(run.invoke(command, ["show", str(tmp_path / "none")]).exception, InvalidInput)

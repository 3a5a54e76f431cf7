"""The certificates of nodes for the command line: `htfi certs` calls it."""

from htfi.adapters.certs.authority import (
    DEFAULT_DAYS,
    MAX_DAYS,
    CertificateAction,
    CertificateRole,
    IssuedCertificate,
    NodeCertificate,
    list_certificates,
    make_certificates,
)

__all__ = [
    "DEFAULT_DAYS",
    "MAX_DAYS",
    "CertificateAction",
    "CertificateRole",
    "IssuedCertificate",
    "NodeCertificate",
    "list_certificates",
    "make_certificates",
]

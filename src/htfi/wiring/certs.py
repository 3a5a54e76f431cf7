"""The certificates of nodes for the command line: `htfi certs` calls it."""

from htfi.adapters.certs.authority import (
    DEFAULT_DAYS,
    MOST_DAYS,
    Deed,
    Made,
    NodeCertificate,
    Role,
    list_certificates,
    make_certificates,
)

__all__ = [
    "DEFAULT_DAYS",
    "MOST_DAYS",
    "Deed",
    "Made",
    "NodeCertificate",
    "Role",
    "list_certificates",
    "make_certificates",
]

"""Whom a client trusts and who it is over TLS, by the files that variables of the environment name."""

import ssl
from collections.abc import Mapping

from htfi.domain.errors import InvalidInput


def client_tls(named: Mapping[str, str], prefix: str) -> ssl.SSLContext:
    """Of the files CA, CERT and KEY of `named`, each may be empty; `prefix` begins their variables' names.

    Raises: InvalidInput.
    """
    try:
        context = ssl.create_default_context(cafile=named["CA"] or None)
        if named["CERT"]:
            context.load_cert_chain(named["CERT"], named["KEY"] or None)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise InvalidInput(f"{prefix}CA, {prefix}CERT or {prefix}KEY cannot be used: {reason}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

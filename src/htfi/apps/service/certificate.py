"""The service's certificate, replaced while it runs: connections that are there go on, new ones get the new."""

import ssl
import sys
from pathlib import Path

from htfi.domain.errors import InvalidInput

_Stamp = tuple[int, int, int]


class ServerCertificate:
    """A chain and its private key in PEM files. `context` stays the same; what it shows changes."""

    def __init__(self, chain: Path, key: Path) -> None:
        """Raises: InvalidInput."""
        self._chain, self._key = chain, key
        self.context = _context()
        self._stamps: tuple[_Stamp | None, _Stamp | None] = (None, None)
        self.reload()

    def reload(self) -> None:
        """Show what the files hold now. Raises: InvalidInput where they do not fit; what was shown stays."""
        self._stamps = (_stamp(self._chain), _stamp(self._key))
        try:
            _context().load_cert_chain(
                self._chain, self._key
            )  # a chain whose key is not there yet changes nothing
            self.context.load_cert_chain(self._chain, self._key)
        except (ssl.SSLError, OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"--certificate {self._chain} and --key {self._key}: {why}") from None

    def reload_if_changed(self) -> None:
        """Look at the files; where they do not fit one line says so, once for each change."""
        if self._stamps != (_stamp(self._chain), _stamp(self._key)):
            self.reload_or_say()

    def reload_or_say(self) -> None:
        try:
            self.reload()
        except InvalidInput as error:
            sys.stderr.write(f"htfi: {error}: the certificate before stays in use\n")


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

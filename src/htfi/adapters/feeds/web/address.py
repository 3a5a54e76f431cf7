"""Which addresses may be asked, and which machines behind them. The web client and wiring call it."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urljoin, urlsplit

from htfi.domain.errors import InvalidInput

SCHEMES = ("http", "https")
_MAX_URL_CHARS = 2048
_PORTS = {"http": 80, "https": 443}
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A checked http or https address; `host` is lower case and without brackets."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def url(self) -> str:
        return self.origin + self.target


def parse_address(url: str) -> WebAddress:
    """Raises: InvalidInput."""
    try:
        if len(url) > _MAX_URL_CHARS or not url.isascii() or any(mark <= " " for mark in url):
            raise ValueError(url)
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").lower().rstrip("."), parts.port
        if scheme not in SCHEMES or not host or port == 0 or "\\" in url or "%" in host:
            raise ValueError(url)
    except ValueError as error:
        raise InvalidInput(f"'{url[:80]}' is not a web address: write http(s)://HOST/PATH") from error
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{scheme}://…@{host}: an address must hold no user or password: remove them")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebAddress(scheme, host, port or _PORTS[scheme], target)


def resolve_link(base: WebAddress, link: str) -> WebAddress:
    """A link of a page or a redirect, against where it stood. Raises: InvalidInput."""
    try:
        return parse_address(urljoin(base.url, link.strip()).partition("#")[0])
    except ValueError as error:
        raise InvalidInput(f"'{link[:80]}' is not a web address") from error


def is_allowed_target(found: str, host: str, configured: str) -> bool:
    """Whether the machine `found` under `host` may be asked by a source whose person wrote `configured`.

    A machine that is not on the public net only where the person wrote it, as its number or as localhost.
    """
    address = _embedded_ipv4(ip_address(found.partition("%")[0]))
    if address.is_global and not address.is_multicast:
        return True
    if host != configured:
        return False
    if configured == "localhost":
        return address.is_loopback
    try:
        return _embedded_ipv4(ip_address(configured)) == address
    except ValueError:
        return False


def _embedded_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 one, where there is one."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _NAT64) or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address

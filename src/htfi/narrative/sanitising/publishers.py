"""The known publishers, and names and domains that imitate them. `publishers.toml` holds the built-in ones; settings
add to it.
"""

import tomllib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.narrative.sanitising.sources import KINDS

_MAX_NAME_CHARS = 128
_MAX_HOST_CHARS = 253
_MIN_TYPO_CHARS = 6  # letters: shorter names are one edit apart from honest ones

# Letters and digits that look like Latin letters: the common cases of Unicode TS 39.
_SKELETON = {
    ord(drawn): latin
    for latin, many in {
        "a": "аαɑ4@", "b": "ьβв", "c": "сϲ", "d": "ԁ", "e": "еεє3", "g": "ɡ", "h": "һн", "i": "іιıíї1!|lӏℓ",
        "j": "ј", "k": "кκ", "m": "м", "n": "ոη", "o": "оοօᴏ0", "p": "рρ", "q": "ԛ", "r": "гᴦ", "s": "ѕ5$",
        "t": "тτ", "u": "υսц", "v": "ѵν", "w": "ԝωш", "x": "хχ", "y": "уγ", "z": "ᴢ2",
    }.items()
    for drawn in many
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Publisher:
    """A publisher: its name, its kind, its domains and other names."""

    name: str
    kind: str = "press"
    domains: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    common: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidInput("a publisher needs a name")
        if self.kind not in KINDS:
            raise InvalidInput(f"publisher {self.name}: kind must be one of {', '.join(sorted(KINDS))}")
        for domain in self.domains:
            if not domain or "/" in domain or domain != domain.lower() or "." not in domain:
                raise InvalidInput(f"publisher {self.name}: '{domain}' is not a domain such as 'reuters.com'")


class PublisherRegistry:
    """Known publishers, by name and by domain."""

    def __init__(self, own: Iterable[Publisher] = ()) -> None:
        shipped, self._carriers, self._social, self._filings = _shipped_publishers()
        self._by_name: dict[str, Publisher] = {}
        self._by_drawn: dict[str, Publisher] = {}
        self._by_domain: dict[str, Publisher] = {}
        self._brands: dict[str, Publisher] = {}
        for publisher in (*shipped, *own):
            for name in (publisher.name, *publisher.aliases):
                self._by_name[folded(name)] = publisher
                self._by_drawn[visual_skeleton(name)] = publisher
            for domain in publisher.domains:
                self._by_domain[domain] = publisher
                brand = domain.split(".")[0]
                if len(brand) >= _MIN_TYPO_CHARS and not publisher.common:
                    self._brands[brand] = publisher
        self._drawn_brands = {visual_skeleton(brand): publisher for brand, publisher in self._brands.items()}

    def named(self, name: str) -> Publisher | None:
        """The publisher of that very name."""
        return self._by_name.get(folded(name))

    def looks_like(self, name: str) -> Publisher | None:
        """The publisher whose name this one imitates: it looks alike, or is one edit apart."""
        if folded(name) in self._by_name:
            return None
        like = self._by_drawn.get(visual_skeleton(name))
        if like is not None:
            return like
        plain = folded(name)
        if len(plain) < _MIN_TYPO_CHARS:
            return None
        return next((one for known, one in self._by_name.items() if _is_one_edit_apart(plain, known)), None)

    def of_domain(self, host: str) -> Publisher | None:
        """The publisher that a host belongs to."""
        return next((self._by_domain[one] for one in _parent_domains(host) if one in self._by_domain), None)

    def shown_in(self, host: str) -> Publisher | None:
        """The publisher whose whole domain a foreign host begins with or contains: 'reuters.com.example.org'."""
        labels = host.split(".")
        for start in range(len(labels)):
            for end in range(start + 2, len(labels)):
                shown = self._by_domain.get(".".join(labels[start:end]))
                if shown is not None and self.of_domain(host) is None:
                    return shown
        return None

    def is_social(self, host: str) -> bool:
        return any(one in self._social for one in _parent_domains(host))

    def carries(self, host: str) -> bool:
        return any(one in self._carriers for one in _parent_domains(host))

    def names_filings(self, name: str) -> bool:
        """Whether an office publishes under that name what others file with it."""
        return folded(name) in self._filings

    def imitates(self, host: str) -> Publisher | None:
        """The publisher whose domain a host imitates: its name beside others, a look-alike, or one edit apart."""
        if self.of_domain(host) or self.is_social(host) or self.carries(host):
            return None
        for label in host.split("."):
            for part in (label, *label.split("-")):
                shown = _decoded_label(part)
                like = self._brands.get(shown) or self._drawn_brands.get(visual_skeleton(shown))
                if like is not None:
                    return like
                for brand, publisher in self._brands.items():
                    if _is_one_edit_apart(shown, brand) or (
                        len(shown) > len(brand) and shown.startswith(brand)
                    ):
                        return publisher
        return None


@lru_cache(maxsize=8)
def publisher_registry(own: tuple[Publisher, ...]) -> PublisherRegistry:
    """The built-in list with these; it never changes, and takes a while to build."""
    return PublisherRegistry(own)


def host_of(url: str) -> str:
    """The host that a link leads to, lower case; empty if it has none.

    If a name stands before it, as in 'shown.com@real.com', both are given: only the last is a host.
    """
    _, found, rest = url.strip()[:2048].partition("://")
    if not found:
        rest = url.strip()[:2048].removeprefix("//")
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    shown, found, host = rest.rpartition("@")
    if not host.startswith("["):
        host = host.partition(":")[0]
    host = unicodedata.normalize("NFKC", host).lower().strip(".").removeprefix("www.")[:_MAX_HOST_CHARS]
    if "." not in host:
        return ""
    return f"{shown.partition(':')[0].lower()[:_MAX_HOST_CHARS]}@{host}" if found else host


def folded(name: str) -> str:
    """A name without case, punctuation and blanks."""
    plain = unicodedata.normalize("NFKC", name[:_MAX_NAME_CHARS]).casefold()
    return "".join(char for char in plain if char.isalnum())


def visual_skeleton(name: str) -> str:
    """What a name looks like: names that look alike have the same skeleton."""
    plain = "".join(
        char
        for char in unicodedata.normalize("NFKD", name[:_MAX_NAME_CHARS].casefold())
        if not unicodedata.combining(char)
    )
    alike = "".join(char for char in plain.translate(_SKELETON) if char.isalnum())
    return alike.replace("rn", "m").replace("vv", "w").replace("ci", "d")


def _parent_domains(host: str) -> list[str]:
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(len(labels) - 1)]


def _decoded_label(label: str) -> str:
    """A label as a browser shows it: RFC 3492 decoded."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError, ValueError):
        return label


def _is_one_edit_apart(one: str, other: str) -> bool:
    """Whether one letter was inserted, removed, changed, or swapped with the next."""
    if one == other or min(len(one), len(other)) < _MIN_TYPO_CHARS - 1 or abs(len(one) - len(other)) > 1:
        return False
    if max(len(one), len(other)) < _MIN_TYPO_CHARS:
        return False
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    if len(one) == len(other):
        return one[at + 1 :] == other[at + 1 :] or (
            one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
        )
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer[at + 1 :] == shorter[at:]


@lru_cache(maxsize=1)
def _shipped_publishers() -> tuple[tuple[Publisher, ...], frozenset[str], frozenset[str], frozenset[str]]:
    table: dict[str, Any] = tomllib.loads(
        files("htfi.narrative.sanitising").joinpath("publishers.toml").read_text(encoding="utf-8")
    )
    publishers = tuple(
        Publisher(
            one["name"],
            one["kind"],
            tuple(one["domains"]),
            tuple(one.get("aliases", ())),
            one.get("common", False),
        )
        for one in table["publishers"]
    )
    filings = frozenset(folded(name) for name in table["filings"])
    return publishers, frozenset(table["carriers"]), frozenset(table["social"]), filings

"""What a site's robots.txt allows us (RFC 9309), pure: the web client fetches it and asks here."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

MAX_ROBOTS_BYTES = 512_000
_MAX_DELAY_S = 60.0
_MAX_RULES = 4096
_MAX_PATTERN_CHARS = 512


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """Rules that hold for us: (allowed, path pattern), and the seconds that the site wants between requests."""

    rules: tuple[tuple[bool, str], ...] = ()
    delay_s: float = 0.0

    def allows(self, target: str) -> bool:
        """The longest pattern that fits decides; of two as long the one that allows."""
        if target == "/robots.txt":
            return True
        path = _normalised_path(target)
        fitting = [(len(pattern), allowed) for allowed, pattern in self.rules if _matches(pattern, path)]
        return max(fitting)[1] if fitting else True


def parse_robots(body: bytes, agent: str) -> RobotsRules:
    """The groups that name a word of `agent`, or htfi; without such, those for everyone."""
    words = {"htfi", *re.findall(r"[a-z0-9_-]+", agent.lower())}
    own: list[tuple[str, str]] = []
    all_: list[tuple[str, str]] = []
    named = False
    names: list[str] = []
    in_names = False
    for line in body[:MAX_ROBOTS_BYTES].decode("utf-8", "replace").splitlines():
        key, found, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not found:
            continue
        if key == "user-agent":
            names = [*names, value.lower()] if in_names else [value.lower()]
            in_names = True
            named = named or names[-1] in words
            continue
        in_names = False
        if key in ("allow", "disallow", "crawl-delay"):
            if any(name in words for name in names):
                own.append((key, value))
            elif "*" in names:
                all_.append((key, value))
    lines = (own if named else all_)[:_MAX_RULES]
    rules = tuple(
        (key == "allow", _normalised_path(value))
        for key, value in lines
        if key != "crawl-delay" and value and len(value) <= _MAX_PATTERN_CHARS
    )
    delays = [
        float(value)
        for key, value in lines
        if key == "crawl-delay" and re.fullmatch(r"\d{1,4}(\.\d{1,3})?", value)
    ]
    return RobotsRules(rules, min(max(delays, default=0.0), _MAX_DELAY_S))


def _normalised_path(target: str) -> str:
    return unquote(target, errors="replace")


def _matches(pattern: str, path: str) -> bool:
    """`*` stands for any characters, `$` at the end for the end; else the pattern begins the path.

    Piece by piece from the left, so that a hostile pattern costs no more than its length times the path's.
    """
    to_end = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for place, piece in enumerate(rest):
        if to_end and place == len(rest) - 1:
            return path.endswith(piece) and len(path) - len(piece) >= at
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return not to_end or at == len(path)

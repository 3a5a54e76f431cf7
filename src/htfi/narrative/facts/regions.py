"""Finds the economies that a text is about (`regions.toml`), and the economy of a currency."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from htfi.narrative.patterns import FilteredPattern, PatternTable, one_of

EURO_AREA = "EA"
_IN_EURO_AREA = frozenset({"DE", "FR", "IT", "ES"})


def find_regions(text: str) -> tuple[str, ...]:
    """The economies that a text names, in the order of their first mention."""
    regions, table = _patterns()
    first = {
        regions[place]: found.start()
        for place in table.candidates(text)
        if (found := table.patterns[place].search(text)) is not None
    }
    return tuple(sorted(first, key=first.__getitem__))


def is_economy(name: str) -> bool:
    """Whether a name is that of an economy, or of what stands for it ('U.S.', 'Beijing'), and of nothing else."""
    written, loose = _words()
    return name in written or name.lower() in loose


def region_of_currency(code: str) -> str:
    """'EA' for 'EUR'; '' for a code that is none of the table's."""
    return _by_currency().get(code, "")


# By the key of a central bank (`calendar.announcements.CENTRAL_BANKS`).
_REGION_OF_BANK = {
    "fed": "US", "ecb": "EA", "boe": "GB", "boj": "JP", "snb": "CH", "rba": "AU", "rbnz": "NZ", "boc": "CA",
    "riksbank": "SE", "norges": "NO", "rbi": "IN", "pboc": "CN", "banxico": "MX", "bcb": "BR", "cbrt": "TR",
    "tcmb": "TR", "cbr": "RU", "sarb": "ZA", "bok": "KR", "nbp": "PL", "cnb": "CZ", "mnb": "HU", "nbr": "RO",
    "danmarks": "DK", "bi": "ID", "bsp": "PH", "bot": "TH", "bnm": "MY", "boi": "IL", "banrep": "CO", "bcch": "CL",
    "bcrp": "PE", "cbe": "EG", "cbn": "NG", "nbu": "UA", "hkma": "HK",
}  # fmt: skip


def region_of_bank(key: str) -> str:
    """'US' for 'fed'; '' for a key that is none of the table's."""
    return _REGION_OF_BANK.get(key, "")


def is_within(region: str, whole: str) -> bool:
    """Whether a region is another one, or a part of it: Germany of the euro area."""
    return region == whole or (whole == EURO_AREA and region in _IN_EURO_AREA)


@cache
def _patterns() -> tuple[Sequence[str], PatternTable]:
    """The economies and their patterns."""
    found: dict[str, FilteredPattern] = {}
    for region, entry in _read().items():
        words = [word.strip() for word in entry["words"].split("|")]
        exact = [word for word in words if not word.islower()]
        loose = [word for word in words if word.islower()]
        parts = [rf"(?<![\w.]){one_of(exact)}(?!\w)"]
        if loose:
            parts.append(rf"(?i:(?<!\w){one_of(loose)}(?!\w))")
        found[region] = FilteredPattern("|".join(parts))
    return tuple(found), PatternTable(found.values())


@cache
def _words() -> tuple[frozenset[str], frozenset[str]]:
    """The words of all economies: as they are written, and in any case."""
    words = {word.strip() for entry in _read().values() for word in entry["words"].split("|")}
    return frozenset(words), frozenset(word for word in words if word.islower())


@cache
def _by_currency() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for region, entry in _read().items():
        if entry["currency"]:
            found.setdefault(entry["currency"], region)
    return found


@cache
def _read() -> dict[str, dict[str, str]]:
    text = (resources.files("htfi.narrative.facts") / "regions.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)

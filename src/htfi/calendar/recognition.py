"""What kind of event a calendar's words name, by the rules in kinds.toml."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from htfi.domain.errors import InvalidInput
from htfi.domain.time import parse_timestamp

# What says of which period a figure is, or of which estimate, and so nothing about its kind.
_BRACKETS = re.compile(r"[(\[][^)\]]*[)\]]")
_PERIODS = re.compile(r"\b(?:\d?[mqy]/\d?[mqy]|yoy|mom|qoq|ytd y/y|3m/3m|annuali[sz]ed)\b")
_ESTIMATES = re.compile(
    r"\b(?:prelim|preliminary|flash|final|revised|advance reading|first estimate|second estimate|third estimate|s a|"
    r"n s a|w d a|sa|nsa|wda|national|nominal|real|quarterly|hsbc|caixin|markit|hcob|s and p global|"
    r"jibun bank|judo bank|rbc|anz|nab|westpac|nbs|cb|ilo)\b"
)
_MONTHS = re.compile(
    r"[(\[]\s*(?:\d{0,2}\s*)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|q[1-4]|[1-4]q|20\d\d)[^)\]]*[)\]]",
    re.IGNORECASE,
)
_BANKS = {
    "federal open market committee": "fomc",
    "european central bank": "ecb",
    "bank of england": "boe",
    "bank of japan": "boj",
    "bank of canada": "boc",
    "swiss national bank": "snb",
    "reserve bank of australia": "rba",
    "reserve bank of new zealand": "rbnz",
    "federal reserve": "fed",
}


class _Rule(NamedTuple):
    kind: str
    names: re.Pattern[str]
    unless: re.Pattern[str] | None
    currency: str
    from_ns: int
    until_ns: int


class _Rules(NamedTuple):
    rules: tuple[_Rule, ...]
    countries: tuple[tuple[str, str], ...]  # words that a name begins with, longest first; prefix
    by_currency: Mapping[str, str]  # currency to prefix
    currencies: Mapping[str, str]  # prefix or word to currency
    prefixes: Mapping[str, str]  # prefix or word to prefix
    named_by: Mapping[str, re.Pattern[str]]  # currency to words that say so
    country_words: re.Pattern[str]


def event_kind(name: str, currency: str = "", symbol: str = "", time_ns: int = 0, country: str = "") -> str:
    """The canonical kind of an event, '' where no rule knows it.

    `country` is a calendar's own column of it; `time_ns` decides who is in office, 0 lets anybody be.
    """
    return _kind(name, currency, bool(symbol), time_ns if _names_a_person(name) else 0, country)


def economy_of(name: str, kind: str = "") -> str:
    """The currency of the economy that a name speaks of ('ECB rate decision', 'Retail sales, Great Britain'), else the
    one whose kind it is; '' where neither tells.
    """
    rules, text = _rules(), plain_name(name)
    prefix = _country_at_start(rules, text) or _country_within(rules, text) or kind.partition("_")[0]
    return _bank_or_release(rules, text) or rules.currencies.get(prefix, "")


def currency_of_country(country: str) -> str:
    """The currency of a country as calendars name it ('Germany', 'us', 'Euro Area'); '' of one that is not known."""
    rules, code = _rules(), country.strip().upper()
    return code if code in rules.by_currency else rules.currencies.get(_plain(country), "")


@lru_cache(maxsize=65_536)
def _kind(name: str, currency: str, has_symbol: bool, time_ns: int, stated_country: str) -> str:
    rules, text = _rules(), plain_name(name)
    stated = rules.prefixes.get(_plain(stated_country), "")
    if not (currency or stated or has_symbol):
        currency = _bank_or_release(rules, text)
        stated = "" if currency else _country_within(rules, text)
    country = _country_at_start(rules, text) or stated or rules.by_currency.get(currency, "")
    for rule in rules.rules:
        if rule.currency and rule.currency != (currency or rules.currencies.get(country, "")):
            continue
        if time_ns and not rule.from_ns <= time_ns < rule.until_ns:
            continue
        if rule.names.search(text) and not (rule.unless is not None and rule.unless.search(text)):
            if "{country}" not in rule.kind:
                return rule.kind
            if country:
                return rule.kind.replace("{country}", country)
    return "earnings" if has_symbol and not currency else ""


def _country_at_start(rules: _Rules, text: str) -> str:
    return next((prefix for words, prefix in rules.countries if text.startswith(f"{words} ")), "")


def _country_within(rules: _Rules, text: str) -> str:
    found = rules.country_words.search(text)
    return rules.prefixes[found[0]] if found else ""


def _bank_or_release(rules: _Rules, text: str) -> str:
    """The currency whose bank or release is named, where it is one alone ('Fed and ECB' tells nothing)."""
    found = [currency for currency, words in rules.named_by.items() if words.search(text)]
    return found[0] if len(found) == 1 else ""


def plain_name(name: str) -> str:
    """A name as rules compare it: lower case, one space between words, without signs, periods and estimates."""
    text = _BRACKETS.sub(" ", name.lower())
    text = _PERIODS.sub(" ", text)
    text = re.sub(r"(['’])s\b", "", text)
    text = re.sub(r"\bu\.\s?s\.?(?=\W)", "us ", text)
    text = re.sub(r"\bu\.\s?k\.?(?=\W)", "uk ", text)
    return " ".join(_ESTIMATES.sub(" ", _banks_shortened(text)).split())


@lru_cache(maxsize=65_536)
def figure_name(name: str) -> str:
    """A figure's name without the period that a release is of ('(SEP)'), so that its releases share it.

    What it is measured by ('m/m', 'YoY') stays, and so does which estimate it is: their surprises differ in size.
    """
    return without_period(name).lower()


@lru_cache(maxsize=65_536)
def without_period(name: str) -> str:
    """A name as it is written, without the period that a release is of ('(SEP)')."""
    return " ".join(_MONTHS.sub(" ", name).split())


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9äöüé]+", " ", text.lower().replace("&", " and ")).split())


@lru_cache(maxsize=65_536)
def _names_a_person(name: str) -> bool:
    text = plain_name(name)
    return any(
        rule.names.search(text) for rule in _rules().rules if rule.from_ns or rule.until_ns < _FOREVER_NS
    )


_FOREVER_NS = 1 << 62


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    table = tomllib.loads(files("htfi.calendar").joinpath("kinds.toml").read_text(encoding="utf-8"))
    return read_rules(table)


def read_rules(table: Mapping[str, Any]) -> _Rules:
    """The rules of a table such as kinds.toml's. Raises: InvalidInput, naming the rule."""
    countries: Mapping[str, Sequence[str]] = table["countries"]
    by_currency: dict[str, str] = {}
    currencies: dict[str, str] = {}
    words: list[tuple[str, str]] = []
    for prefix, (currency, *begins) in countries.items():
        by_currency.setdefault(currency, prefix)
        currencies.setdefault(prefix, currency)
        for one in begins:
            currencies.setdefault(one, currency)
            words.append((one, prefix))
    given: Sequence[Mapping[str, Any]] = table["rule"]
    rules = tuple(_read_rule(one, f"rule {place}") for place, one in enumerate(given, 1))
    words.sort(key=lambda pair: -len(pair[0]))
    prefixes = {**dict(words), **{prefix: prefix for prefix in countries}}
    named: Mapping[str, Sequence[str]] = table.get("named_by", {})
    named_by = {currency: _pattern(of) for currency, of in named.items()}
    return _Rules(
        rules, tuple(words), by_currency, currencies, prefixes, named_by, _pattern([one for one, _ in words])
    )


def _read_rule(given: Mapping[str, Any], where: str) -> _Rule:
    unknown = sorted(given.keys() - {"kind", "names", "not", "currency", "from", "until"})
    if unknown or not given.get("kind") or not given.get("names"):
        raise InvalidInput(f"{where}: a rule has kind and names, and may have not, currency, from, until")

    def day(key: str, default: int) -> int:
        return parse_timestamp(f"{given[key]}T00:00:00Z") if key in given else default

    return _Rule(
        given["kind"],
        _pattern(given["names"]),
        _pattern(given["not"]) if given.get("not") else None,
        given.get("currency", ""),
        day("from", 0),
        day("until", _FOREVER_NS),
    )


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    made = [r"\b.*\b".join(re.escape(_banks_shortened(part)) for part in name.split("...")) for name in names]
    return re.compile(rf"\b(?:{'|'.join(made)})\b")


def _banks_shortened(part: str) -> str:
    text = _plain(part)
    for words, short in _BANKS.items():
        text = text.replace(words, short)
    return text

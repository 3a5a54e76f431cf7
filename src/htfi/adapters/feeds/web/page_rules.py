"""Where lists of press releases and statements keep their parts: selectors of three central banks, and of any other.

A mapping's [source.page] replaces single selectors. `pages` applies them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_ISO_DAY = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)(?!\d)")
_NAMED_MONTH = (
    re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>(?:19|20)\d\d)\b", re.I),
    re.compile(
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+(?P<year>(?:19|20)\d\d)\b", re.I
    ),
)
_MONTH_FIRST = re.compile(r"\b(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>(?:19|20)\d\d)\b")
_DAY_FIRST = re.compile(r"\b(?P<day>\d{1,2})[/.](?P<number>\d{1,2})[/.](?P<year>(?:19|20)\d\d)\b")
_AM_PM_TIME = re.compile(
    r"\b(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?\s*(?P<half>[ap])\.?m\.?\s*\(?\s*"
    r"(?P<zone>E[DS]?T|CES?T|BST|GMT|UTC)?",
    re.I,
)
_TIME_24H = re.compile(
    r"\b(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)\s*\(?(?P<zone>E[DS]?T|CES?T|BST|GMT|UTC)\b", re.I
)
_ZONES = {
    "ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York", "CET": "Europe/Berlin",
    "CEST": "Europe/Berlin", "BST": "Europe/London", "GMT": "Europe/London", "UTC": "UTC",
}  # fmt: skip
_MAX_TEXT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class PageRules:
    """CSS selectors. On the list: `item`, and in it `link`, `title`, `date`. On the statement: `heading`, `dated`,
    `text`, and `drop` for what is not part of it. `zone` is the clock of its times."""

    name: str
    publisher: str
    item: str
    link: str
    title: str
    date: str
    heading: str
    dated: str
    text: str
    drop: str
    zone: str = ""
    month_first: bool = False


_DROP = (
    "nav, header, footer, aside, form, button, select, iframe, object, figure, dialog, menu, "
    "[role=navigation], [role=banner], [role=contentinfo], [role=search], [role=complementary], [role=dialog], "
    ".breadcrumb, .breadcrumbs, [class*=breadcrumb], [class*=cookie], [class*=share], [class*=social], "
    "[class*=related], [class*=newsletter], [class*=subscribe], [class*=skip-], [id*=cookie], [id*=footer], "
    "[class*=site-nav], [class*=sidebar], [class*=back-to-top]"
)
_TEXT = "[itemprop=articleBody], article, [role=main], main, #content, #main, .content"
_DATED = "time[datetime], time, [class*=date], [class*=published], [class*=time]"

FED = PageRules(
    "fed", "Federal Reserve Board",
    item="div.row:has(> .eventlist__event), div.row:has(> [class*=eventlist__time])",
    link=".eventlist__event a[href], a[href]",
    title=".eventlist__event a em, .eventlist__event a, a", date=".eventlist__time time, .eventlist__time, time",
    heading="#article h3.title, h3.title, h1", dated="#article .article__time, .article__time, .releaseTime",
    text="#article", drop=f"{_DROP}, .article__time, .releaseTime, h3.title, .lastUpdate, #lastUpdate, .shareDL",
    zone="America/New_York", month_first=True,
)  # fmt: skip
ECB = PageRules(
    "ecb", "European Central Bank",
    item="dl > dd:has(.title a), dl > div > dd:has(.title a)", link=".title a[href]",
    title=".title a", date="dt, .date",
    heading="h1.ecb-pressContentTitle, main h1, h1", dated="p.ecb-publicationDate, .ecb-publicationDate, main time",
    text="main .section, main",
    drop=f"{_DROP}, h1, .ecb-publicationDate, .title, .address-box, .contacts, [class*=Contact]",
    zone="Europe/Berlin",
)  # fmt: skip
BOE = PageRules(
    "boe", "Bank of England",
    item="a.release, .release:has(a[href])", link="a[href]", title="h3, .list, a", date="time, .release-date",
    heading="h1[itemprop=name], h1", dated=".published-date, .published-date time, time",
    text=".page-section .page-content, .page-content, main",
    drop=f"{_DROP}, h1, .published-date, .page-banner, .release-type-news",
    zone="Europe/London",
)  # fmt: skip
GENERIC = PageRules(
    "any", "", item="", link="a[href]", title="h1, h2, h3, h4, a", date=_DATED,
    heading="main h1, article h1, h1", dated=_DATED, text=_TEXT, drop=f"{_DROP}, h1",
)  # fmt: skip
_HOSTS = {"fed": "federalreserve.gov", "ecb": "ecb.europa.eu", "boe": "bankofengland.co.uk"}
BANKS = (FED, ECB, BOE)
KEYS = tuple(
    field.name
    for field in fields(PageRules)
    if field.name not in ("name", "publisher", "zone", "month_first")
)


def candidate_rules(host: str, page: Mapping[str, str], zone: str) -> list[PageRules]:
    """The rules to try on a list of this host: a mapping's own, the bank's own, else all."""
    own = next((rules for rules in BANKS if f".{host}".endswith(f".{_HOSTS[rules.name]}")), None)
    chosen = (GENERIC,) if page.get("item") else (own, GENERIC) if own else (*BANKS, GENERIC)
    return [with_overrides(rules, page, zone) for rules in chosen]


def with_overrides(rules: PageRules, page: Mapping[str, str], zone: str) -> PageRules:
    """The rules with what a mapping states."""
    own = {key: value for key, value in page.items() if key in KEYS}
    month_first = rules.month_first or zone.startswith("America/")
    return replace(rules, **own, zone=zone or rules.zone, month_first=month_first)


def read_day(text: str, *, month_first: bool) -> date | None:
    """The first date in a text, in English or in numbers."""
    text = text[:_MAX_TEXT_CHARS]
    for pattern in (_ISO_DAY, *_NAMED_MONTH, _MONTH_FIRST if month_first else _DAY_FIRST):
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = parts.get("number") or _MONTHS.index(parts["month"].lower()) + 1
            try:
                return date(int(parts["year"]), int(month), int(parts["day"]))
            except ValueError:
                continue
    return None


def read_clock(text: str, day: date, zone: str) -> datetime | None:
    """The instant on `day` that a text such as 'For release at 2:00 p.m. EDT' names."""
    match = _AM_PM_TIME.search(text[:_MAX_TEXT_CHARS]) or _TIME_24H.search(text[:_MAX_TEXT_CHARS])
    if match is None:
        return None
    parts = match.groupdict()
    hour, minute = int(parts["hour"]), int(parts.get("minute") or 0)
    if half := (parts.get("half") or "").lower():
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    name = _ZONES.get((parts.get("zone") or "").upper(), zone)
    if not name or hour > 23 or minute > 59:
        return None
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(name))

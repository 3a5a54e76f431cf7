"""Announcements of scheduled events, and the other way round: one calendar serves views and bands alike."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from htfi.calendar.recognition import currency_of_country
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import format_ns
from htfi.narrative.calendar.announcements import CENTRAL_BANKS, REGIONS, Announcement, AnnouncementKind

_BANKS: Mapping[str, str] = MappingProxyType({
    "fomc_decision": "fed", "ecb_decision": "ecb", "boe_decision": "boe", "boj_decision": "boj", "boc_decision": "boc",
    "rba_decision": "rba", "rbnz_decision": "rbnz", "snb_decision": "snb", "se_rate_decision": "riksbank",
    "no_rate_decision": "norges", "banxico_decision": "banxico",
})  # fmt: skip
_REGIONS: Mapping[str, str] = MappingProxyType({"ea": "euro"})  # ours of a kind's prefix, where it is another
_DATA = {"cpi": AnnouncementKind.CPI, "gdp": AnnouncementKind.GDP, "payrolls": AnnouncementKind.PAYROLLS}
_BASES = (
    ("m/m", "mom"),
    ("(mom)", "mom"),
    ("q/q", "qoq"),
    ("(qoq)", "qoq"),
    ("y/y", "yoy"),
    ("(yoy)", "yoy"),
)
_PREFERRED = ("mom", "qoq", "annualised", "yoy", "")  # of several figures of one release, which is announced
_MAX_PERCENT = 100.0
_MIN_JOBS = 1_000.0  # whose forecast is stated to the thousand: less is in thousands


def announcements_of(events: Iterable[ScheduledEvent]) -> tuple[Announcement, ...]:
    """Events whose outcomes are worth preparing for: rates, consumer prices, payrolls, GDP, results of companies.

    Only of a known time, and not withdrawn; of several lines of one release the first figure stands.
    """
    best: dict[tuple[AnnouncementKind, str, int], Announcement] = {}
    for event in events:
        made = _announcement(event)
        if made is None:
            continue
        key = made.kind, made.subject, made.at_ns
        if key not in best or _rank(made) < _rank(best[key]):
            best[key] = made
    return tuple(sorted(best.values(), key=lambda one: (one.at_ns, one.id)))


def events_of(releases: Sequence[Announcement]) -> tuple[ScheduledEvent, ...]:
    """The announcements of a calendar as scheduled events."""
    banks = {bank: kind for kind, bank in _BANKS.items()}
    made: list[ScheduledEvent] = []
    for one in releases:
        region = next((ours for ours, theirs in _REGIONS.items() if theirs == one.subject), one.subject)
        match one.kind:
            case AnnouncementKind.RATE:
                kind = banks.get(
                    one.subject, f"{one.subject}_decision" if one.subject in CENTRAL_BANKS else ""
                )
                currency = _BANK_CURRENCIES.get(one.subject, "")
            case AnnouncementKind.EARNINGS:
                kind, currency = "earnings", ""
            case _:
                kind, currency = f"{region}_{one.kind.value}", currency_of_country(region)
        symbols = one.symbols if one.kind is AnnouncementKind.EARNINGS else ("",)
        scale = 1e3 if one.kind is AnnouncementKind.PAYROLLS else 1.0
        made += [
            ScheduledEvent(
                time_ns=one.at_ns,
                kind=kind,
                name=one.id,
                currency=currency,
                symbol=symbol,
                impact="" if symbol else "high",
                forecast=None if one.consensus is None else one.consensus * scale,
                previous=one.level,
            )
            for symbol in symbols or ("",)
        ]
    return tuple(made)


_BANK_CURRENCIES: Mapping[str, str] = MappingProxyType({
    "fed": "USD", "ecb": "EUR", "boe": "GBP", "boj": "JPY", "boc": "CAD", "rba": "AUD", "rbnz": "NZD", "snb": "CHF",
    "riksbank": "SEK", "norges": "NOK", "banxico": "MXN", "pboc": "CNY",
})  # fmt: skip


def _announcement(event: ScheduledEvent) -> Announcement | None:
    if not event.is_exact or event.withdrawn_ns or event.is_by_rule:
        return None
    forecast = event.forecast
    if event.kind in _BANKS:
        level = event.previous if event.previous is not None and abs(event.previous) < _MAX_PERCENT else None
        return _made(event, AnnouncementKind.RATE, _BANKS[event.kind], level=level)
    if event.kind == "earnings" and event.symbol:
        return _made(event, AnnouncementKind.EARNINGS, event.symbol, consensus=forecast)
    prefix, _, what = event.kind.partition("_")
    region, kind = _REGIONS.get(prefix, prefix), _DATA.get(what)
    if kind is None or region not in REGIONS:
        return None
    if kind is AnnouncementKind.PAYROLLS:
        return _made(event, kind, region, consensus=_in_thousands(forecast))
    consensus = forecast if forecast is not None and abs(forecast) < _MAX_PERCENT else None
    return _made(event, kind, region, consensus=consensus, basis=_basis(event, kind))


def _in_thousands(jobs: float | None) -> float | None:
    """Of a figure in jobs, or in thousands of them, as vendors write '180' whose unit stands on their page."""
    return jobs if jobs is None or abs(jobs) < _MIN_JOBS else jobs / 1e3


def _made(
    event: ScheduledEvent,
    kind: AnnouncementKind,
    subject: str,
    *,
    level: float | None = None,
    consensus: float | None = None,
    basis: str = "",
) -> Announcement:
    return Announcement(
        id=f"{event.kind if not event.symbol else event.symbol}-{format_ns(event.time_ns)}",
        kind=kind,
        at_ns=event.time_ns,
        subject=subject,
        symbols=(event.symbol,) if event.symbol else (),
        level=level,
        consensus=consensus,
        basis=basis,
    )


def _basis(event: ScheduledEvent, kind: AnnouncementKind) -> str:
    name = event.name.lower()
    found = next((basis for sign, basis in _BASES if sign in name), "")
    if "annuali" in name or (kind is AnnouncementKind.GDP and event.kind == "us_gdp" and found == "qoq"):
        return "annualised"  # as US GDP is stated, also where a calendar writes q/q
    return found


def _rank(one: Announcement) -> tuple[bool, int]:
    return one.consensus is None and one.level is None, _PREFERRED.index(one.basis)

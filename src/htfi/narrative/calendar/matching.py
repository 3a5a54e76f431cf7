"""Which release of the calendar an item reports, and with which outcome. It refuses where it is not sure.

An item that corrects or retracts another, that comes out of quarantine, or that counts for less than another is never
taken for a release.
"""

from typing import NamedTuple

from htfi.domain.events import News
from htfi.narrative.calendar.data import told_data
from htfi.narrative.calendar.rates import Told, told_rate
from htfi.narrative.calendar.release import Kind, Release
from htfi.narrative.calendar.results import told_results


class Match(NamedTuple):
    """An item's release, the key of its outcome, and what told it."""

    release: Release
    key: str
    why: str


def match(item: News, releases: tuple[Release, ...], levels: dict[str, float]) -> Match | None:
    """The release among those open that the item reports; None where it is none of them, or could be several.

    `levels` are the policy rates before, by the id of the release.
    """
    if item.corrects or item.retracts or item.released_by:
        return None
    found: list[Match] = []
    for release in releases:
        if not admits(release, item):
            continue
        told = tell(item, release, levels.get(release.id, release.level))
        if told.key is not None:
            found.append(Match(release, told.key, told.why))
    return found[0] if len(found) == 1 else None


def admits(release: Release, item: News) -> bool:
    """Whether this publisher may tell this release, and the item's symbols do not speak against it."""
    if release.publishers:
        told_by = {item.publisher.casefold(), item.source.casefold()} - {""}
        if told_by.isdisjoint(name.casefold() for name in release.publishers):
            return False
    return not (release.symbols and item.symbols) or not set(release.symbols).isdisjoint(item.symbols)


def tell(item: News, release: Release, level: float | None) -> Told:
    """What an item says of a release, whoever has published it."""
    if release.kind is Kind.RATE:
        return told_rate(item.headline, item.body, release, level)
    if release.kind is Kind.EARNINGS:
        return told_results(item.headline, release)
    return told_data(item.headline, release)

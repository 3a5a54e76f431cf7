"""Finds which announcement of the calendar an item reports, and with which outcome; none if unsure.

An item that corrects or retracts another, that a person admitted from quarantine, or that has less than full trust is
never matched.
"""

from typing import NamedTuple

from htfi.domain.events import News
from htfi.narrative.calendar.announcements import Announcement, AnnouncementKind
from htfi.narrative.calendar.earnings import earnings_outcome
from htfi.narrative.calendar.economic_data import data_outcome
from htfi.narrative.calendar.rate_decisions import HeadlineOutcome, OutcomeReason, rate_outcome


class AnnouncementMatch(NamedTuple):
    """An item's announcement, the key of its outcome, and the evidence."""

    release: Announcement
    key: str
    why: OutcomeReason


def match_item(
    item: News, releases: tuple[Announcement, ...], levels: dict[str, float]
) -> AnnouncementMatch | None:
    """The open announcement that the item reports; None if it is none of them, or could be several.

    `levels` are the policy rates before, by the id of the announcement.
    """
    if item.corrects or item.retracts or item.released_by:
        return None
    found: list[AnnouncementMatch] = []
    for release in releases:
        if not may_report(release, item):
            continue
        told = item_outcome(item, release, levels.get(release.id, release.level))
        if told.key is not None:
            found.append(AnnouncementMatch(release, told.key, told.why))
    return found[0] if len(found) == 1 else None


def may_report(release: Announcement, item: News) -> bool:
    """Whether this publisher may report this announcement, and the item's symbols do not rule it out."""
    if release.publishers:
        told_by = {item.publisher.casefold(), item.source.casefold()} - {""}
        if told_by.isdisjoint(name.casefold() for name in release.publishers):
            return False
    return not (release.symbols and item.symbols) or not set(release.symbols).isdisjoint(item.symbols)


def item_outcome(item: News, release: Announcement, level: float | None) -> HeadlineOutcome:
    """The outcome of an announcement that an item reports, whoever published it."""
    if release.kind is AnnouncementKind.RATE:
        return rate_outcome(item.headline, item.body, release, level)
    if release.kind is AnnouncementKind.EARNINGS:
        return earnings_outcome(item.headline, release)
    return data_outcome(item.headline, release)

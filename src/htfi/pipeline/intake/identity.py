"""What makes two rows the same: the id that their source gave, else all that they say. Readers call it."""

from collections.abc import Hashable

from htfi.domain.events import Bar, Event, MacroRelease, News

_LONG_ID = 200


def identity(event: Event, content: Hashable) -> Hashable:
    """`content` stands for all of the row; the time joins it for rows that do not hold their own."""
    known_as = event.id
    if known_as and not (type(event) is News and known_as == f"{event.source}:{event.row}"):
        if len(known_as) > _LONG_ID:
            return content
        if isinstance(event, News):
            return (known_as, event.symbols, event.corrects, event.retracts)
        if isinstance(event, MacroRelease):
            return (known_as, event.series)
        return (known_as, event.symbol) if isinstance(event, Bar) else (known_as, event.symbol, event.venue)
    return (event.event_time_ns, content)

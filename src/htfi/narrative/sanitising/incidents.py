"""What screening tells of an item that it held back, for the suspicion that follows."""

import msgspec


class ScreeningIncident(msgspec.Struct, frozen=True, gc=False):
    """An item was held back: its source, its symbols, the rule, and when it came."""

    source: str
    symbols: tuple[str, ...]
    rule: str
    at_ns: int

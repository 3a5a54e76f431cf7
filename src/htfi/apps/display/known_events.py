"""What a decision's record says of what was known of the bar that its band was made for, in words."""

from msgspec import UNSET

from htfi.apps.display.drawing import printable
from htfi.domain.decision import Decision
from htfi.domain.time import format_ns


def known_events_words(decision: Decision) -> str:
    """'the next bar's band is × 1.9 for us payrolls at 2016-11-04 13:30 (× 1.88)'; empty where the record has none."""
    known = decision.known_events
    if known is UNSET:
        return ""
    listed = ", ".join(
        f"{printable(one.kind.replace('_', ' '))} at {format_ns(one.time_ns)[:16].replace('T', ' ')}"
        f" (× {one.factor:.2f})"
        for one in known.events
    )
    return f"the next bar's band is × {known.factor:.2f} for {listed or 'several small events'}"

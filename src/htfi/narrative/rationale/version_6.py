"""Version 6 of the rationale's words, `templates/6`: a model's reason for another direction than the view's says so.

The sentences are those of version 5. Once a ledger names this version, a sentence or a figure is changed by a new
version only.
"""

from htfi.domain.news_view import NewsView
from htfi.narrative.merging import unmerged
from htfi.narrative.rationale.version_5 import PhrasingV5


class PhrasingV6(PhrasingV5):
    """See `Phrasing`."""

    version = "templates/6"

    def view_slots(self, view: NewsView, symbol: str) -> dict[str, str]:
        slots = super().view_slots(view, symbol)
        if slots and view.words:
            own = unmerged(view)
            if own is not None and own.direction != view.direction:
                slots["words"] += f", by the model, which alone {_seen(own)}"
        return slots


def _seen(view: NewsView) -> str:
    if not view.direction:
        return "sees no direction"
    return "sees a rise" if view.direction > 0.0 else "sees a fall"

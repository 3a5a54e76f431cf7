"""Finds voices that are new here while others are established: alone, their items count for little at first.

A lie that is well written and told once looks like any other headline; only its source gives it away. A voice is on
probation until it has been active for days. Voices active before any was established are the run's own feeds, and none
of them is new; nor is a proven publisher.
"""

from collections import OrderedDict
from typing import Any

import msgspec

from htfi.domain.news import ScreeningFinding
from htfi.domain.time import NS_PER_DAY

NEWCOMER_RULE = "newcomer"
NEWCOMER_TRUST = 0.04  # in its items alone
_NEWCOMER_STRENGTH = 0.5  # discounts, and holds nothing back
_PROBATION_NS = 7 * NS_PER_DAY
_MAX_PROBATION_ITEMS = 3


class _NewVoice(msgspec.Struct):
    first_ns: int
    num: int = 0


class NewcomerRegister:
    """Voices by how long they have been active, in bounded number: a flood of new ones displaces only new ones."""

    def __init__(self, max_voices: int) -> None:
        self._most = max_voices
        self._known: OrderedDict[str, None] = OrderedDict()  # longest silent first
        self._new: OrderedDict[str, _NewVoice] = OrderedDict()  # likewise

    def judge(self, voice: str, now_ns: int) -> ScreeningFinding | None:
        """Record that a voice is active at an instant; a finding if it is new here."""
        if voice in self._known:
            self._known.move_to_end(voice)
            return None
        heard = self._new.get(voice)
        if heard is None:
            heard = self._new[voice] = _NewVoice(now_ns)
            if len(self._new) > self._most:
                self._new.popitem(last=False)
        self._new.move_to_end(voice)
        heard.num += 1
        if now_ns - heard.first_ns >= _PROBATION_NS and heard.num > _MAX_PROBATION_ITEMS:
            self._admit(voice)
            return None
        if not self._known:
            return None
        days = max(now_ns - heard.first_ns, 0) // NS_PER_DAY
        since = f"first seen {days} days ago" if days else "first seen today"
        return ScreeningFinding(
            NEWCOMER_RULE,
            _NEWCOMER_STRENGTH,
            f"its source is new here, {since}, so it counts for little alone",
        )

    def is_new(self, voice: str) -> bool:
        """Whether others are established and this voice is not."""
        return bool(self._known) and voice not in self._known

    def _admit(self, voice: str) -> None:
        """Establish a voice; the first one ends the initial period, in which none is new."""
        found = [*self._new, voice] if not self._known else [voice]
        for name in dict.fromkeys(found):
            self._new.pop(name, None)
            self._known[name] = None
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def state(self) -> dict[str, Any]:
        return {
            "known": list(self._known),
            "new": [[name, voice.first_ns, voice.num] for name, voice in self._new.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._known = OrderedDict.fromkeys(state["known"])
        self._new = OrderedDict((name, _NewVoice(first_ns, num)) for name, first_ns, num in state["new"])

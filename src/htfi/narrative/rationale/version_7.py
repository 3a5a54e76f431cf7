"""Version 7 of the rationale's words, `templates/7`: what was known of the next bar is said, and what it makes of the
band; it stands first where it says the most.

The other sentences are those of version 6. Once a ledger names this version, a sentence or a figure is changed by a new
version only.
"""

from htfi.domain.decision import KnownEvents
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.narrative.rationale.event_names import known_words
from htfi.narrative.rationale.phrasing import load_sentences
from htfi.narrative.rationale.units import two_digits
from htfi.narrative.rationale.version_6 import PhrasingV6


class PhrasingV7(PhrasingV6):
    """See `Phrasing`."""

    version = "templates/7"
    sentences = load_sentences("templates_7.toml")
    states_known = True

    def known_slots(self, known: KnownEvents, interval: str) -> dict[str, str]:
        return {
            "next_bar": known_words(known.events, with_times=_is_within_a_day(interval)),
            "known_factor": two_digits(known.factor),
        }


def _is_within_a_day(interval: str) -> bool:
    try:
        return parse_duration(interval) < NS_PER_DAY
    except InvalidInput:
        return False

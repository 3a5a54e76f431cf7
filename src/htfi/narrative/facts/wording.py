"""Says in words what the facts of an item meant for an asset, and what its body added."""

from msgspec import UNSET

from htfi.domain.news import ItemReading
from htfi.narrative.facts.record import BodyStance

_VERBS = {
    BodyStance.NONE: ("states no side", "state no side"),
    BodyStance.AGREES: ("agrees", "agree"),
    BodyStance.DISAGREES: ("disagrees", "disagree"),
    BodyStance.ADDS: ("adds a side", "add a side"),
}


def reading_words(reading: ItemReading) -> str:
    """'facts: guidance, up by 1.5 standard deviations, confidence 90%; 3 passages of the body agree'."""
    said = f"says nothing here ({reading.silence})"
    if not reading.silence:
        side = "up" if reading.direction > 0 else "down"
        said = f"{side} by {reading.size_sigmas:.1f} standard deviations, confidence {reading.confidence:.0%}"
    body = ""
    if reading.num_passages is not UNSET and reading.body is not UNSET:
        body = f"; {body_words(reading.num_passages, BodyStance(reading.body))}"
    return f"facts: {reading.event.replace('_', ' ')}, {said}{body}"


def body_words(num_passages: int, stance: BodyStance) -> str:
    """'1 passage of the body disagrees'."""
    verb = _VERBS[stance][num_passages != 1]
    return f"{num_passages} passage{'' if num_passages == 1 else 's'} of the body {verb}"

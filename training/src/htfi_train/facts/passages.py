"""Texts like passages of a body, from the labelled lines: alone, with what wires put before and after, joined."""

import random
from collections.abc import Sequence

from htfi_train.facts.lines import FactLine, NamePool

_NAME_SHARE = 0.5  # of names that are replaced
_PLAIN_SHARE = 0.45  # of texts that are a line as it stands
_JOINED_SHARE = 0.6  # of the others that are followed by another line
_CITIES = (
    "NEW YORK", "LONDON", "TOKYO", "FRANKFURT", "PARIS", "HONG KONG", "BEIJING", "SEOUL", "SYDNEY", "MUMBAI",
    "WASHINGTON", "CHICAGO", "TORONTO", "SAO PAULO", "ZURICH", "MILAN", "MADRID", "DETROIT", "BOSTON",
)  # fmt: skip
_MONTHS = ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_BEFORE = (
    "{city}, {month} {number} - ", "{city} - ", "{city}, {month}. {number} (Newswire) - ", "On {day}, ", "Meanwhile, ",
    "The company said ", "Earlier on {day}, ", "In {month}, ", "Analysts said ", "By late {day}, ", "He added that ",
    "Separately, ", "In a statement, it said that ", "According to a filing on {day}, ",
)  # fmt: skip
_AFTER = (
    " on {day}.", ", the company said on {day}.", ", according to people who know of it.", ", it said in a statement.",
    " in {month}, the spokesman said.", ", analysts said.", ", said an analyst in {city}.", ", a filing showed.",
    " in the quarter that ended {month} {number}.", ", and its shares were little changed in early trade.",
    ", after the market closed on {day}.", ", compared with a year earlier.", ", two sources said on {day}.",
)  # fmt: skip
_JOINTS = (". ", ", while ", "; ", ", and ", " -- ", ". ", ", after ", " as ")


def passages_of(
    lines: Sequence[FactLine], names: NamePool, others: Sequence[str], rng: random.Random
) -> list[str]:
    """One text for each line, then the other texts as they are."""
    found: list[str] = []
    for place, line in enumerate(lines):
        text, _ = names.variant(line, rng, _NAME_SHARE)
        if rng.random() >= _PLAIN_SHARE:
            text = _framed(text, rng)
            if rng.random() < _JOINED_SHARE:
                # A neighbour is mostly of the same kind of event.
                near = lines[min(max(place + rng.randint(-3, 3), 0), len(lines) - 1)]
                other = near if rng.random() < 0.5 else rng.choice(lines)
                text = f"{text.rstrip('.')}{rng.choice(_JOINTS)}{names.variant(other, rng, _NAME_SHARE)[0]}"
        found.append(text)
    return [*found, *others]


def _framed(text: str, rng: random.Random) -> str:
    """With what wires put before and after a sentence."""
    words = {
        "city": rng.choice(_CITIES),
        "month": rng.choice(_MONTHS),
        "day": rng.choice(_DAYS),
        "number": rng.randint(1, 31),
    }
    before = rng.choice(_BEFORE).format(**words) if rng.random() < 0.5 else ""
    after = rng.choice(_AFTER).format(**words) if rng.random() < 0.6 else ""
    return f"{before}{text.rstrip('.') if after else text}{after}"

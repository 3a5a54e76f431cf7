"""Messages of those who pump a price, as on boards and channels, from the templates in `data/pumps.toml`.

The sanitiser's weights are learned from them, and `htfi eval sanitise` plants them among headlines.
"""

import msgspec

from htfi_train.simulation.headlines.grammar import expand, wording
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table


class _PumpTemplates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    slots: dict[str, str]
    kinds: dict[str, tuple[str, ...]]


_TEXTS = read_table("pumps", _PumpTemplates)
_SHARES = (5, 6, 3, 5, 2)
KINDS = tuple(_TEXTS.kinds)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw(rng: Rng, kind: str | None = None) -> str:
    """One message, of `kind` or any; a third are of two parts."""
    kind = kind or KINDS[rng.weighted_index(_SHARES)]
    text = _one(rng, kind)
    if rng.chance(0.33):
        text = f"{text} {_one(rng, KINDS[rng.weighted_index(_SHARES)])}"
    way = rng.uniform()
    return text.upper() if way < 0.08 else text.lower() if way < 0.14 else text


def _one(rng: Rng, kind: str) -> str:
    tick = "".join(rng.choice(_LETTERS) for _ in range(3 + rng.integer(2)))
    slots = _TEXTS.slots | {
        "n": str(1 + rng.integer(12)), "x": str(2 + rng.integer(8)), "y": str(5 + rng.integer(9)), "tick": tick,
    }  # fmt: skip
    text = wording(_TEXTS.kinds[kind], slots, rng)
    if any(mark in text for mark in "[|{"):
        return text
    return expand(f"[{text}|{text[:1].upper()}{text[1:]}]", {}, rng)

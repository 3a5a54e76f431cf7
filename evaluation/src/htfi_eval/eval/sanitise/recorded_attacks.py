"""Every attack of `htfi eval sanitise` as recorded items, which the sandbox of the package htfi replays.

The sandbox runs without this distribution, so it holds the items. This module, run with a file's name, writes them
again; a test compares.
"""

import sys
from pathlib import Path

import msgspec

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi_eval.eval.sanitise.attacks import ATTACKS, HEADLINES, TAKEN_OVER, AttackSetup
from htfi_train.simulation.rng import Rng

_DAY_NS = (
    1_600_000_000 * NS_PER_S // NS_PER_DAY * NS_PER_DAY
)  # each item keeps its time before the end of this day
_SEED = 19


def recorded_items() -> list[News]:
    """The items of every class of attack, each made from one honest headline; an id begins with its class."""
    classes = {**ATTACKS, **{f"{name}, own feed": attack for name, attack in TAKEN_OVER.items()}}
    return [
        msgspec.structs.replace(item, id=f"{name}/{number}")
        for place, (name, attack) in enumerate(classes.items())
        for number, item in enumerate(
            attack(AttackSetup(HEADLINES[place % len(HEADLINES)], _DAY_NS + NS_PER_DAY, Rng(_SEED, place)))
        )
    ]


def recorded_lines() -> bytes:
    """The file: an item a line."""
    return b"".join(msgspec.json.encode(item) + b"\n" for item in recorded_items())


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(recorded_lines())

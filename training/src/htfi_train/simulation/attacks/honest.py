"""Honest words of finance, to learn what is not an attack: news, central banks, filings, notes, careful and lively
posts.

Among them are hard cases: news about chatbots and fraud, advice to customers, questions as headlines, quotations. The
simulated market's own headlines are mixed in. The templates are in `data/honest.toml`, written for this project.
"""

import msgspec

from htfi_train.simulation.headlines.grammar import wording
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.stories import stories_of_market
from htfi_train.simulation.tables import read_table


class _HonestTemplates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    slots: dict[str, str]
    lists: dict[str, tuple[str, ...]]


_TEXTS = read_table("honest", _HonestTemplates)


def draw(rng: Rng) -> str:
    """One honest sentence or post; a fifth have two sentences."""
    text = _one(rng)
    return f"{text.rstrip('. ')}. {_one(rng)}" if rng.chance(0.2) else text


def headlines(seed: int, num_markets: int) -> list[str]:
    """Headlines of the simulated market."""
    return [
        item.headline
        for market in range(num_markets)
        for story in stories_of_market(seed, market)
        for item in story.items
    ]


def _one(rng: Rng) -> str:
    frames = (_TEXTS.lists["news"], _TEXTS.lists["hard"], _TEXTS.lists["posts"])[
        rng.weighted_index((6, 3, 1.5))
    ]
    text = wording(frames, _TEXTS.slots, rng).strip()
    return text[:1].upper() + text[1:] if rng.chance(0.9) else text

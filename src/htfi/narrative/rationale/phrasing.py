"""What a version of the rationale's words consists of, and how a text is made of it. `versions` lists them.

A decision names its version in `models["rationale"]`; it is written, amended and verified with that version's words.
Templates are names of parts joined by '+', the opening first. Sentences hold no digit: every figure is a slot in
braces, so `fill(rationale.template, rationale.slots, phrasing)` gives a recorded text again.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple, Protocol

from htfi.domain.decision import FeatureDriver, KnownEvents, NewsTilt, Regime
from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import NewsView

SLOT = re.compile(r"\{(\w+)\}")


class Sentences(NamedTuple):
    """The prepared sentences of one version. `{claim}` stands for the claim in an opening."""

    claim: str
    openings: Mapping[str, str]
    parts: Mapping[str, str]


def load_sentences(file: str) -> Sentences:
    """The sentences of a version, from its file beside this module."""
    text = files("htfi.narrative.rationale").joinpath(file).read_text(encoding="utf-8")
    return Sentences(**tomllib.loads(text))


class Phrasing(Protocol):
    """The words of one version. Each method gives what stands in the slots; returns are log returns."""

    @property
    def version(self) -> str: ...

    @property
    def sentences(self) -> Sentences: ...

    @property
    def states_known(self) -> bool:
        """Whether it has sentences on what is known of the next bar."""
        ...

    def bar(self, interval: str) -> str:
        """What a bar of this interval is called after 'the next'."""
        ...

    def state(self, regime: Regime) -> str: ...

    def unit(self, width: float) -> str:
        """The unit of a band of this width."""
        ...

    def recorded_unit(self, slots: Mapping[str, str]) -> str:
        """The unit that recorded slots give their band in."""
        ...

    def band_slots(self, last_price: float, low: float, high: float, unit: str) -> dict[str, str]:
        """The ends of the band, as prices and as returns."""
        ...

    def width(self, width: float, unit: str) -> str: ...

    def last_move_slots(self, last_return: float, last_sigmas: float) -> dict[str, str]:
        """The last return, and its size in the standard deviations then expected."""
        ...

    def driver(self, driver: FeatureDriver) -> str:
        """A feature that is far from usual, beside what is usual."""
        ...

    def expert(self, name: str) -> str: ...

    def age(self, age_ns: int) -> str: ...

    def view_slots(self, view: NewsView, symbol: str) -> dict[str, str]:
        """A reader's opinion; empty where it has none. A flat one has no direction and no size."""
        ...

    def tilt_slots(self, tilt: NewsTilt, unit: str) -> dict[str, str]:
        """What a view changes in the forecast at the first horizon."""
        ...

    def divergence(self, tilt: NewsTilt) -> str:
        """The share of the narrator's earlier tilts that diverged less; rounded down."""
        ...

    def prepared(self, view: NewsView) -> str:
        """The announcement and the outcome that a view was prepared for."""
        ...

    def known_slots(self, known: KnownEvents, interval: str) -> dict[str, str]:
        """What is known of the next bar, and by how much its band is wider; empty where it is not said."""
        ...


def fill(template: str, slots: Mapping[str, str], phrasing: Phrasing) -> str:
    """The text that a template's name and its slots make. Raises: InvalidInput if they do not fit."""
    try:
        composed = _compose(template, phrasing)
        return composed.text % tuple(slots[name] for name in composed.order)
    except KeyError as missing:
        raise InvalidInput(f"rationale template '{template[:80]}': there is no {missing}") from None


def fill_parts(parts: Sequence[str], slots: Mapping[str, str], phrasing: Phrasing) -> str:
    """The sentences of some parts of a template, without its opening."""
    sentences = "".join(phrasing.sentences.parts[part] for part in parts)
    return SLOT.sub(lambda slot: slots[slot[1]], sentences).strip()


def slots_in(template: str, phrasing: Phrasing) -> frozenset[str]:
    """The names of the slots in a template's sentences. Raises: KeyError for a part that the version lacks."""
    return _compose(template, phrasing).names


class _Composed(NamedTuple):
    """A template's sentences with %s for each slot, and the slots' names in order."""

    text: str
    order: tuple[str, ...]
    names: frozenset[str]


@lru_cache(maxsize=512)
def _compose(template: str, phrasing: Phrasing) -> _Composed:
    sentences = phrasing.sentences
    opening, *rest = template.split("+")
    paragraph = "".join([sentences.openings[opening], *(sentences.parts[part] for part in rest)])
    paragraph = paragraph.replace("{claim}", sentences.claim)
    order = tuple(SLOT.findall(paragraph))
    return _Composed(SLOT.sub("%s", paragraph), order, frozenset(order))

"""Orders to a model as an attacker would plant them in news, from the templates in `data/injections.toml`.

The sanitiser's weights are learned from them, and `htfi eval sanitise` plants them among headlines.
"""

import msgspec

from htfi_train.simulation.headlines.grammar import wording
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table


class _InjectionTemplates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    slots: dict[str, str]
    kinds: dict[str, tuple[str, ...]]
    lists: dict[str, tuple[str, ...]]


_TEXTS = read_table("injections", _InjectionTemplates)
KINDS = (*_TEXTS.kinds, "foreign", "forged")


def draw(rng: Rng, kind: str | None = None) -> str:
    """One injection, of `kind` or any."""
    kind = kind or KINDS[rng.weighted_index((5, 5, 4, 4, 5, 2, 1))]
    if kind == "foreign":
        return wording(_TEXTS.lists["foreign"], _TEXTS.slots, rng)
    if kind == "forged":
        order = wording(_TEXTS.kinds["override"] + _TEXTS.kinds["reading"], _TEXTS.slots, rng)
        name = wording(("{name}",), _TEXTS.slots, rng)
        return rng.choice(_TEXTS.lists["forged"]).replace("{ignored}", order).replace("{name}", name)
    text = wording(_TEXTS.kinds[kind], _TEXTS.slots, rng).strip()
    text = text.replace(" .", ".").replace(" !", "!").replace("..", ".").replace("?.", "?")
    return _cased(text, rng)


def _cased(text: str, rng: Rng) -> str:
    way = rng.uniform()
    if way < 0.04:
        return text.upper()
    if way < 0.10:
        return text.lower()
    return text[:1].upper() + text[1:]

"""The grammar: `[one|another|]` is a choice, `{slot}` a fact, both may nest. Every cause's module writes in it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from htfi_train.simulation.rng import Rng

# A part is text, a slot's name, or the options of a choice.
Slot = tuple[str]
Node = str | Slot | list["Program"]
Program = tuple[Node, ...]


def expand(template: str, slots: Mapping[str, str], rng: Rng) -> str:
    """One wording of `template`; what fills a slot may itself hold choices. Spaces are made single.

    Raises: KeyError for a slot without a fact: a fault of the grammar, found by its tests.
    """
    words: list[str] = []
    _walk(_compiled(template), slots, rng, words)
    text = " ".join("".join(words).split())
    return (
        text.replace(" ,", ",").replace(" ;", ";").replace(" :", ":")
        if " ," in text or " ;" in text
        else text
    )


def wording(templates: Sequence[str], slots: Mapping[str, str], rng: Rng) -> str:
    """One wording of one of the templates."""
    return expand(rng.choice(templates), slots, rng)


def _walk(program: Program, slots: Mapping[str, str], rng: Rng, words: list[str]) -> None:
    for node in program:
        if isinstance(node, str):
            words.append(node)
        elif isinstance(node, list):
            _walk(node[int(rng.uniform() * len(node))], slots, rng, words)
        else:
            fill = slots[node[0]]
            if "[" in fill or "{" in fill:
                _walk(_compiled(fill), slots, rng, words)
            else:
                words.append(fill)


@lru_cache(maxsize=65_536)
def _compiled(template: str) -> Program:
    program, end = _parse(template, 0)
    if end != len(template):
        raise ValueError(f"{template[end]!r} at {end} stands outside brackets in {template!r}")
    return program


def _parse(text: str, at: int) -> tuple[Program, int]:
    nodes: list[Node] = []
    start = at
    while at < len(text) and text[at] not in "|]":
        mark = text[at]
        if mark not in "[{":
            at += 1
            continue
        if at > start:
            nodes.append(text[start:at])
        if mark == "{":
            end = text.index("}", at)
            nodes.append((text[at + 1 : end],))
            at = end + 1
        else:
            options: list[Program] = []
            while True:
                option, at = _parse(text, at + 1)
                options.append(option)
                if text[at] == "]":
                    break
            nodes.append(options)
            at += 1
        start = at
    if at > start:
        nodes.append(text[start:at])
    return tuple(nodes), at

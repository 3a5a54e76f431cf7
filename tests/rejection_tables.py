"""Bare tables as models: the next token's law by the last token, so that every sequence's law can be written down."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from htfi.decoding.noise import Doubles, Keys, noise_key
from htfi.decoding.rules import rejection
from htfi.decoding.rules.rejection import (
    ACCEPT_STREAMS,
    DRAFT_STREAMS,
    RESAMPLE_STREAMS,
    ROOT,
    EntropyAwareRule,
    SiblingSet,
)
from htfi.decoding.sampling import AllowedTokens, SamplingParams


class Pair(NamedTuple):
    """A target's and a draft's laws [V + 1, C] of the next place by the last one; the last row begins a text."""

    target: Doubles
    draft: Doubles
    admitted: AllowedTokens


def pair(
    num_tokens: int,
    sampling: SamplingParams,
    seed: int = 0,
    banned: Sequence[int] = (),
    difference: float = 1.0,
    draft_sampling: SamplingParams | None = None,
) -> Pair:
    """Random logits for both; `banned` tokens are what a form does not admit. Places are then fewer than tokens."""
    rng = np.random.Generator(np.random.PCG64(seed))
    target = rng.standard_normal((num_tokens + 1, num_tokens)).astype(np.float32) * np.float32(1.2)
    noise = rng.standard_normal(target.shape).astype(np.float32)
    draft = target + np.float32(1.5 * difference) * noise
    admitted = AllowedTokens.of(np.array([t for t in range(num_tokens) if t not in banned], np.int64))
    rows = [*admitted.ids.tolist(), num_tokens]
    return Pair(
        rejection.token_probabilities(target, admitted, sampling)[rows],
        rejection.token_probabilities(draft, admitted, draft_sampling or sampling)[rows],
        admitted,
    )


@dataclass(frozen=True)
class Speculation:
    """How a text of `length` places is drafted: `widths[d]` siblings after each node of depth d.

    The other fields are for planting errors: `claimed` is the law told to the rule in place of the draft's, `keeps`
    may refuse a drawn token by its law and place, `goes_on` may end a branch by its law before drawing, and `lags`
    takes the bonus from the law of the place before.
    """

    length: int
    widths: tuple[int, ...]
    claimed: Doubles | None = None
    keeps: Callable[[Doubles, int], bool] | None = None
    goes_on: Callable[[Doubles], bool] | None = None
    lags: bool = False
    certain: bool = False
    entropy: EntropyAwareRule | None = None


def one_key(seed: int, stream: int, place: int) -> Keys:
    return np.array([noise_key(seed, stream, place)], np.uint64)


def write(models: Pair, how: Speculation, seed: int) -> tuple[int, ...]:
    """One text, by rounds of drafting and the rule."""
    text: list[int] = []
    while len(text) < how.length:
        text += _round(models, how, seed, text)
    return tuple(text)


def _round(models: Pair, how: Speculation, seed: int, text: Sequence[int]) -> list[int]:
    tokens, parents = _drafted(models, how, seed, text)
    depth = {ROOT: 0}
    last = {ROOT: text[-1] if text else -1}
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        depth[node], last[node] = depth[parent] + 1, token

    def look(node: int) -> SiblingSet | None:
        at = len(text) + depth[node]
        if at == how.length:
            return None
        nodes = [child for child, parent in enumerate(parents) if parent == node]
        places = [tokens[child] for child in nodes]
        flips = rejection.acceptance_uniforms(one_key(seed, ACCEPT_STREAMS, at), models.admitted, places)
        read = last[parents[node]] if how.lags and not nodes and node >= 0 else last[node]
        draft = (models.draft if how.claimed is None else how.claimed)[last[node]]
        return SiblingSet(nodes, places, flips, models.target[read], None if how.certain else draft)

    def redraw(node: int, weights: Doubles) -> int:
        row_key = one_key(seed, RESAMPLE_STREAMS, len(text) + depth[node])
        return rejection.sample_without_replacement(weights, models.admitted, row_key)[0]

    path, place = rejection.accept_tree(look, redraw, how.entropy)
    return [tokens[node] for node in path] + ([place] if place >= 0 else [])


def _drafted(models: Pair, how: Speculation, seed: int, text: Sequence[int]) -> tuple[list[int], list[int]]:
    tokens: list[int] = []
    parents: list[int] = []
    level = [ROOT]
    for depth, width in enumerate(how.widths[: how.length - len(text)]):
        grown: list[int] = []
        for branch, node in enumerate(level):
            law = models.draft[tokens[node] if node >= 0 else (text[-1] if text else -1)]
            if how.goes_on is not None and not how.goes_on(law):
                continue
            branch_key = noise_key(noise_key(seed, DRAFT_STREAMS, len(text) + depth), 0, branch)
            for place in rejection.sample_without_replacement(
                law, models.admitted, np.array([branch_key], np.uint64), width
            ):
                if how.keeps is None or how.keeps(law, place):
                    tokens.append(place)
                    parents.append(node)
                    grown.append(len(tokens) - 1)
        level = grown
    return tokens, parents


def sequence_law(models: Pair, length: int) -> Doubles:
    """The probability of every text, in the order of `itertools.product`."""
    num = models.target.shape[1]
    law = []
    for text in itertools.product(range(num), repeat=length):
        before = (-1, *text[:-1])
        law.append(np.prod([models.target[b, t] for b, t in zip(before, text, strict=True)]))
    return np.array(law)


def tally(models: Pair, how: Speculation, num_texts: int, first_seed: int) -> list[int]:
    """How often each text came up, in the order of `sequence_law`."""
    num = models.target.shape[1]
    counts = [0] * num**how.length
    for seed in range(first_seed, first_seed + num_texts):
        at = 0
        for place in write(models, how, seed):
            at = at * num + place
        counts[at] += 1
    return counts


def chain(length: int, num_drafted: int, **planted: object) -> Speculation:
    return replace(Speculation(length, (1,) * num_drafted), **planted)  # type: ignore[arg-type]

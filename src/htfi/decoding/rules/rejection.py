"""The classic rejection rule of speculative sampling: what of a draft may stay so that the target's law does.

The walk under that rule calls it, for engines that offer no shared noise and for comparison; draft strategies call
`laws` and `drawn`. A law is a vector of probabilities over the C tokens that a form admits at one place; tokens
are told by their places in it.

Where chance comes from: the shared noise's counter, so that a run replays bit for bit, but never stream s of the
answer itself. The draft's draws of a place read stream DRAFT_STREAMS + s, the coins that accept or reject read
COIN_STREAMS + s (one coin for each token, so one for each attempt), and the token drawn in the end reads
REDRAW_STREAMS + s. A place is settled once, so no coin and no redraw is used twice; draws of a place that a round
did not reach are drawn again alike, which is harmless because nothing has looked at them (see `accept_tree`).

Sources: Leviathan, Kalman and Matias 2023; Chen et al. 2023, arXiv 2302.01318; for several siblings without
replacement SpecInfer, arXiv 2305.09781, and recursive rejection sampling, arXiv 2402.14160.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from htfi.decoding.noise import Doubles, Keys, gumbel_bounds, gumbel_of, hashes
from htfi.decoding.ports import Floats
from htfi.decoding.rules.entropy import EntropyAware, suppressed
from htfi.decoding.sampling import Admitted, Sampling, kept
from htfi.domain import exact
from htfi.domain.errors import IntegrityError

DRAFT_STREAMS = 1 << 32  # path n reads stream n + 1, so these begin far above
COIN_STREAMS = 2 << 32
REDRAW_STREAMS = 3 << 32
ROOT = -1  # the settled text, as the node before all others
_COIN_BITS = 2.0**-52
_ROUGH = 1e-9  # above what numpy's logarithm differs between machines


class Verdict(NamedTuple):
    """Which of the siblings is accepted (−1: none), and the weights [C] that a token is then to be drawn from."""

    taken: int
    left: Doubles


class Fork(NamedTuple):
    """What stands after one node: its children in the order they were drawn in, each with its place and its coin.

    `target` [C] is the target's law there, `draft` [C] the law that the children were really drawn from, None where
    they were certain.
    """

    nodes: Sequence[int]
    places: Sequence[int]
    flips: Sequence[float] | Doubles
    target: Doubles
    draft: Doubles | None


class Accepted(NamedTuple):
    """The accepted nodes, root to leaf, and the place of the target's own next token (−1 where nothing may follow)."""

    path: list[int]
    place: int


def laws(logits: Floats, admitted: Admitted, sampling: Sampling) -> Doubles:
    """Probabilities [N, C] of the admitted tokens: logits [N, V], tempered and truncated as `choose` does it.

    A point mass at temperature 0. A row of NaN where a logit is not finite.
    """
    scores = logits.take(admitted.ids, axis=1)  # [N, C]
    finite = np.isfinite(scores.max(axis=1, keepdims=True))
    scores = np.where(finite, scores, np.float32(0.0))
    if sampling.temperature == 0.0:
        law = np.zeros(scores.shape)
        law[np.arange(len(law)), scores.argmax(axis=1)] = 1.0
        return np.where(finite, law, np.nan)
    scaled = scores.astype(np.float64) / sampling.temperature
    depth = scaled - scaled.max(axis=1, keepdims=True)
    stays = depth > -700.0  # `exact.exp` goes no deeper
    if sampling.truncates:
        stays &= kept(scaled, sampling)
    weights = np.where(stays, exact.exp(np.where(stays, depth, 0.0)), 0.0)
    return np.where(finite, weights / _total(weights)[:, None], np.nan)


def drawn(weights: Doubles, admitted: Admitted, row_keys: Keys, num: int = 1) -> list[int]:
    """Up to `num` different places drawn one after the other from weights [C], without replacement.

    The greatest sums of log weight and Gumbel noise, in their order; weights need not sum to 1. Ties go to the
    lowest place. Source: Gumbel top-k, arXiv 1903.06059.
    """
    places = weights.nonzero()[0]
    (bits,) = hashes(row_keys, admitted.counters[places])
    if len(places) > num:  # exact noise and logarithms are dear: only for those that bounds leave in question
        low, high = gumbel_bounds(bits)
        rough = np.log(weights[places])
        floor = np.partition(rough + low, -num)[-num] - _ROUGH
        few = (rough + high >= floor).nonzero()[0]
        places, bits = places[few], bits[few]
    if len(places) == 1:
        return places.tolist()
    order = np.argsort(-(exact.log(weights[places]) + gumbel_of(bits)), kind="stable")
    return places[order[:num]].tolist()


def coins(row_keys: Keys, admitted: Admitted, places: Sequence[int]) -> Doubles:
    """A fair number in (0, 1) for each of several tokens at one place."""
    bits = hashes(row_keys, admitted.counters[np.asarray(places, np.int64)])[0]
    return (bits.astype(np.float64) + 0.5) * _COIN_BITS


def judge(
    target: Doubles, draft: Doubles | None, siblings: Sequence[int], flips: Sequence[float] | Doubles
) -> Verdict:
    """Try the siblings one after the other: the token that results has the target's law [C] exactly.

    `draft` is the law [C] that they were REALLY drawn from, in this order without replacement: after temperature,
    truncation and rounding. None says that they were not drawn but certain, as from a look-up. `flips` are fair
    numbers in (0, 1), one for each, on which the siblings do not depend.

    Where none is accepted the token is to be drawn from `left`. Raises IntegrityError for a sibling that `draft`
    can not have given.
    """
    left, still = target, draft
    for index, (place, flip) in enumerate(zip(siblings, flips, strict=True)):
        here = _certain(len(target), place) if still is None else still
        if not here[place] > 0.0:
            raise IntegrityError("a drafted token that its law never gives: send the law it was drawn from")
        if accepts(left[place], here[place], flip):
            return Verdict(index, left)
        left = residual(left, here)
        still = None if still is None else without(still, place)
    return Verdict(-1, left)


def accepts(target: float, draft: float, flip: float) -> bool:
    """True with probability min(1, target/draft)."""
    return flip * draft < target


def residual(target: Doubles, draft: Doubles) -> Doubles:
    """What the target's law [C] holds above the draft's, normalised; the target's own where that is nothing."""
    above = np.maximum(target - draft, 0.0)
    total = float(_total(above))
    return above / total if total > 0.0 else target


def without(law: Doubles, place: int) -> Doubles:
    """The law [C] of the next sibling, once this one is out; nothing but zeros where none is left."""
    rest = law.copy()
    rest[place] = 0.0
    total = float(_total(rest))
    return rest / total if total > 0.0 else rest


def accept_tree(
    look: Callable[[int], Fork | None],
    redraw: Callable[[int, Doubles], int],
    entropy: EntropyAware | None = None,
) -> Accepted:
    """Walk a drafted tree from the settled text down; the tokens that result have the target's law exactly.

    `look(node)` shows what follows a node (ROOT first), None at the end of the text; `redraw(node, weights)` draws
    the token after the last accepted node: of what is left at a rejection, of the target's whole law (the bonus)
    where no child was drafted. With `entropy` the law is distorted.

    Non-anticipation: whether a node is in the tree may depend on laws, on what is settled, and on nodes above it;
    never on its own token nor on what follows it. So a length is decided from the entropy of a law before its
    token is drawn; a drawn token discarded because its probability is low biases the output.
    """
    path: list[int] = []
    here = ROOT
    while (fork := look(here)) is not None:
        taken, left = judge(fork.target, fork.draft, fork.places, fork.flips)
        if taken < 0:
            return Accepted(path, redraw(here, left))
        if entropy is not None and fork.draft is not None and entropy.doubts(fork.target, fork.draft):
            return Accepted(path, redraw(here, suppressed(fork.target, fork.places[taken])))
        here = fork.nodes[taken]
        path.append(here)
    return Accepted(path, -1)


def accept_chain(
    drafted: Sequence[int],
    draft: Doubles,
    target: Doubles,
    flips: Sequence[float],
    redraw: Callable[[int, Doubles], int],
) -> tuple[int, int]:
    """How many of K drafted places stay, and the place after them.

    Shapes: the laws that the draft really drew from [K, C]; the target's after the settled text and after each
    drafted token [K+1, C]; flips [K]. `redraw(k, weights)` draws the token after k accepted ones.
    """

    def look(node: int) -> Fork:
        after = node + 1
        if after == len(drafted):
            return Fork((), (), (), target[after], None)
        return Fork((after,), (drafted[after],), (flips[after],), target[after], draft[after])

    path, place = accept_tree(look, lambda node, weights: redraw(node + 1, weights))
    return len(path), place


def _certain(size: int, place: int) -> Doubles:
    law = np.zeros(size)
    law[place] = 1.0
    return law


def _total(weights: Doubles) -> Doubles:
    """Sums of the last axis, one after the other: the same bits everywhere."""
    return np.cumsum(weights, axis=-1)[..., -1]

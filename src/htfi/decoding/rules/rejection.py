"""Entropy-aware rejection, a lossy option: where both models are unsure alike, what was accepted is drawn anew.

The walk under the rejection rule asks it when it is told to, never of itself. It DISTORTS the law: probabilities
that forecasts were calibrated on no longer hold for its output, so no forecast distribution may be drawn with it.
Source: EASD, arXiv 2512.23765. Used for lengths instead of verdicts, entropy costs nothing (see `accept_tree`).

The classic rejection rule of speculative sampling: what of a draft may stay so that the target's law does.

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

Settling a round by the classic rejection rule, the second beside the shared noise. `LocalAuthor` may be given it.

The answers have the target's law, as with the shared noise, but which answer a seed gives depends on the strategy
and on how far it drafted: a replay must draft alike. Any strategy may be used. One that hands over the laws that it
drew from (`DraftTree.laws`, as `Drawn` does) is accepted most often; a guess without a law counts as certain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import UnsetType
from msgspec.structs import replace

from htfi.decoding.draft_tree import DraftTree, node_depths
from htfi.decoding.noise import Doubles, Keys, gumbel_bounds, gumbel_from_hashes, noise_hashes, noise_key
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import AllowedTokens, SamplingParams, truncation_mask
from htfi.decoding.sequence import COMPLETION_STREAM, SequenceState
from htfi.decoding.strategy import DraftVerification
from htfi.domain import portable_math as exact
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import RuleTrace


@dataclass(frozen=True, slots=True)
class EntropyAwareRule:
    """Doubt a token where both laws have more entropy than `threshold_nats` and share at least the fraction
    `overlap` of their `top_n` likeliest tokens. Lossy: opt in by name."""

    threshold_nats: float = 2.0
    top_n: int = 10
    overlap: float = 0.8

    def __post_init__(self) -> None:
        if not self.threshold_nats >= 0.0:
            raise InvalidInput("entropy-aware threshold_nats: take a number ≥ 0")
        if self.top_n < 1:
            raise InvalidInput("entropy-aware top_n: take at least 1")
        if not 0.0 <= self.overlap <= 1.0:
            raise InvalidInput("entropy-aware overlap: take a fraction between 0 and 1")

    def resamples(self, target: Doubles, draft: Doubles) -> bool:
        """Whether a token accepted under these laws [C] is to be suppressed and drawn anew."""
        if min(entropy_nats(target), entropy_nats(draft)) <= self.threshold_nats:
            return False
        num = min(self.top_n, len(target))
        shared = np.intersect1d(_most_likely(target, num), _most_likely(draft, num))
        return len(shared) >= self.overlap * num


def entropy_nats(law: Doubles) -> float:
    """Entropy of a law [C]; 0 for a point mass."""
    held = law[law > 0.0]
    return float(-np.cumsum(held * exact.log(held))[-1])


def without_accepted(target: Doubles, place: int) -> Doubles:
    """The target's weights [C] without one token; as they are where it is the only one."""
    rest = target.copy()
    rest[place] = 0.0
    return rest if rest.any() else target


def _most_likely(law: Doubles, num: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.argsort(-law, kind="stable")[:num]


DRAFT_STREAMS = 1 << 32  # path n reads stream n + 1, so these begin far above
ACCEPT_STREAMS = 2 << 32
RESAMPLE_STREAMS = 3 << 32
ROOT = -1  # the settled text, as the node before all others
_COIN_BITS = 2.0**-52
_ROUGH = 1e-9  # above what numpy's logarithm differs between machines


class SiblingVerdict(NamedTuple):
    """Which of the siblings is accepted (−1: none), and the weights [C] that a token is then to be drawn from."""

    taken: int
    left: Doubles


class SiblingSet(NamedTuple):
    """What stands after one node: its children in the order they were drawn in, each with its place and its coin.

    `target` [C] is the target's law there, `draft` [C] the law that the children were really drawn from, None where
    they were certain.
    """

    nodes: Sequence[int]
    places: Sequence[int]
    flips: Sequence[float] | Doubles
    target: Doubles
    draft: Doubles | None


class AcceptedPath(NamedTuple):
    """The accepted nodes, root to leaf, and the place of the target's own next token (−1 where nothing may follow)."""

    path: list[int]
    place: int


def token_probabilities(logits: Floats, admitted: AllowedTokens, sampling: SamplingParams) -> Doubles:
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
        stays &= truncation_mask(scaled, sampling)
    weights = np.where(stays, exact.exp(np.where(stays, depth, 0.0)), 0.0)
    return np.where(finite, weights / _total(weights)[:, None], np.nan)


def sample_without_replacement(
    weights: Doubles, admitted: AllowedTokens, row_keys: Keys, num: int = 1
) -> list[int]:
    """Up to `num` different places drawn one after the other from weights [C], without replacement.

    The greatest sums of log weight and Gumbel noise, in their order; weights need not sum to 1. Ties go to the
    lowest place. Source: Gumbel top-k, arXiv 1903.06059.
    """
    places = weights.nonzero()[0]
    (bits,) = noise_hashes(row_keys, admitted.counters[places])
    if len(places) > num:  # exact noise and logarithms are dear: only for those that bounds leave in question
        low, high = gumbel_bounds(bits)
        rough = np.log(weights[places])
        floor = np.partition(rough + low, -num)[-num] - _ROUGH
        few = (rough + high >= floor).nonzero()[0]
        places, bits = places[few], bits[few]
    if len(places) == 1:
        return places.tolist()
    order = np.argsort(-(exact.log(weights[places]) + gumbel_from_hashes(bits)), kind="stable")
    return places[order[:num]].tolist()


def acceptance_uniforms(row_keys: Keys, admitted: AllowedTokens, places: Sequence[int]) -> Doubles:
    """A fair number in (0, 1) for each of several tokens at one place."""
    bits = noise_hashes(row_keys, admitted.counters[np.asarray(places, np.int64)])[0]
    return (bits.astype(np.float64) + 0.5) * _COIN_BITS


def verify_siblings(
    target: Doubles, draft: Doubles | None, siblings: Sequence[int], flips: Sequence[float] | Doubles
) -> SiblingVerdict:
    """Try the siblings one after the other: the token that results has the target's law [C] exactly.

    `draft` is the law [C] that they were REALLY drawn from, in this order without replacement: after temperature,
    truncation and rounding. None says that they were not drawn but certain, as from a look-up. `flips` are fair
    numbers in (0, 1), one for each, on which the siblings do not depend.

    Where none is accepted the token is to be drawn from `left`. Raises IntegrityError for a sibling that `draft`
    can not have given.
    """
    left, still = target, draft
    for index, (place, flip) in enumerate(zip(siblings, flips, strict=True)):
        here = _point_mass(len(target), place) if still is None else still
        if not here[place] > 0.0:
            raise IntegrityError("a drafted token that its law never gives: send the law it was drawn from")
        if is_accepted(left[place], here[place], flip):
            return SiblingVerdict(index, left)
        left = residual_distribution(left, here)
        still = None if still is None else without_token(still, place)
    return SiblingVerdict(-1, left)


def is_accepted(target: float, draft: float, flip: float) -> bool:
    """True with probability min(1, target/draft)."""
    return flip * draft < target


def residual_distribution(target: Doubles, draft: Doubles) -> Doubles:
    """What the target's law [C] holds above the draft's, normalised; the target's own where that is nothing."""
    above = np.maximum(target - draft, 0.0)
    total = float(_total(above))
    return above / total if total > 0.0 else target


def without_token(law: Doubles, place: int) -> Doubles:
    """The law [C] of the next sibling, once this one is out; nothing but zeros where none is left."""
    rest = law.copy()
    rest[place] = 0.0
    total = float(_total(rest))
    return rest / total if total > 0.0 else rest


def accept_tree(
    look: Callable[[int], SiblingSet | None],
    redraw: Callable[[int, Doubles], int],
    entropy: EntropyAwareRule | None = None,
) -> AcceptedPath:
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
        taken, left = verify_siblings(fork.target, fork.draft, fork.places, fork.flips)
        if taken < 0:
            return AcceptedPath(path, redraw(here, left))
        if entropy is not None and fork.draft is not None and entropy.resamples(fork.target, fork.draft):
            return AcceptedPath(path, redraw(here, without_accepted(fork.target, fork.places[taken])))
        here = fork.nodes[taken]
        path.append(here)
    return AcceptedPath(path, -1)


def _point_mass(size: int, place: int) -> Doubles:
    law = np.zeros(size)
    law[place] = 1.0
    return law


def _total(weights: Doubles) -> Doubles:
    """Sums of the last axis, one after the other: the same bits everywhere."""
    return np.cumsum(weights, axis=-1)[..., -1]


_WHOLE = np.ones(1)  # the law of a forced token


@dataclass(frozen=True, slots=True)
class RejectionRule:
    """Settles as `settle` does. With `entropy`, lossy: never for answers that a forecast distribution is made of."""

    entropy: EntropyAwareRule | None = None
    widths: tuple[int, ...] = ()  # of the sampled drafts, for the record

    @classmethod
    def from_trace(cls, trace: RuleTrace) -> "RejectionRule":
        """The rule that a record names. Raises: IntegrityError for one that this program does not have."""
        found = cls(widths=trace.widths)
        if trace.name == "entropy_aware":
            try:
                found = cls(_entropy_rule(trace), trace.widths)
            except InvalidInput as error:
                raise IntegrityError(f"the recorded acceptance rule cannot be: {error}") from error
        if found.trace != trace:
            raise IntegrityError(f"the recorded acceptance rule '{trace.name}' is none that this program has")
        return found

    @property
    def trace(self) -> RuleTrace:
        name = "rejection" if self.entropy is None else "entropy_aware"
        told = RuleTrace(name, DRAFT_STREAMS, ACCEPT_STREAMS, RESAMPLE_STREAMS, self.widths)
        if self.entropy is None:
            return told
        threshold_nats, top_n, overlap = self.entropy.threshold_nats, self.entropy.top_n, self.entropy.overlap
        return replace(told, threshold_nats=threshold_nats, top_n=top_n, overlap=overlap)

    def __call__(
        self, stems: Sequence[SequenceState], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[DraftVerification | None]:
        """One outcome a stem, None where a logit that decides is not a finite number.

        Shapes: logits [1 + n, V] for each stem: after its settled text, then after each of the tree's n nodes.
        """
        return [
            _TreeWalk(stem, tree, after).outcome(self.entropy)
            for stem, tree, after in zip(stems, trees, logits, strict=True)
        ]


def _entropy_rule(trace: RuleTrace) -> EntropyAwareRule:
    threshold_nats, top_n, overlap = trace.threshold_nats, trace.top_n, trace.overlap
    if (
        isinstance(threshold_nats, UnsetType)
        or isinstance(top_n, UnsetType)
        or isinstance(overlap, UnsetType)
    ):
        raise InvalidInput("its thresholds are missing")
    return EntropyAwareRule(threshold_nats, top_n, overlap)


class _TreeWalk:
    """One stem's tree as the rule looks at it."""

    def __init__(self, stem: SequenceState, tree: DraftTree, logits: Floats) -> None:
        self._stem, self._tree, self._logits = stem, tree, logits
        self._children = tree.children()
        self._depths: list[int] = [*(node_depths(tree.parents) + 1).tolist(), 0]  # the last is ROOT's
        self._is_finite = True

    def outcome(self, entropy: EntropyAwareRule | None) -> DraftVerification | None:
        path, place = accept_tree(self._look, self._redraw, entropy)
        if not self._is_finite:
            return None
        said = [-1] * (len(self._tree) + 1)
        for before, node in zip((ROOT, *path), path, strict=False):
            said[before] = self._tree.tokens[node]
        here = path[-1] if path else ROOT
        token = self._tokens(here)[place] if place >= 0 else -1
        said[here] = token
        return DraftVerification(path, token, said, bool(np.isfinite(self._logits).all()))

    def _look(self, node: int) -> SiblingSet | None:
        stem, form = self._stem, self._stem.tokenized.grammar
        state = self._state(node)
        if state == form.done:
            return None
        children, step = self._children[node], form.steps[state]
        if step.forced >= 0:
            held = [children[step.forced]] if step.forced in children else []
            return SiblingSet(held, [0] * len(held), [0.5] * len(held), _WHOLE, None)
        (target,) = token_probabilities(self._logits[node + 1][None], step.allowed, stem.tokenized.sampling)
        if np.isnan(target[0]):
            self._is_finite = False
            return None
        ids = step.allowed.ids
        places: list[int] = np.searchsorted(ids, np.array([*children], np.int64)).tolist()
        flips = acceptance_uniforms(self._key(ACCEPT_STREAMS, node), step.allowed, places) if places else ()
        return SiblingSet([*children.values()], places, flips, target, self._tree.draft_probs.get(node))

    def _redraw(self, node: int, weights: Doubles) -> int:
        step = self._stem.tokenized.grammar.steps[self._state(node)]
        if step.forced >= 0:
            return 0
        return sample_without_replacement(weights, step.allowed, self._key(RESAMPLE_STREAMS, node))[0]

    def _tokens(self, node: int) -> list[int]:
        step = self._stem.tokenized.grammar.steps[self._state(node)]
        return [step.forced] if step.forced >= 0 else step.allowed.ids.tolist()

    def _state(self, node: int) -> int:
        return self._tree.states[node] if node >= 0 else self._stem.state

    def _key(self, streams: int, node: int) -> Keys:
        place = len(self._stem.tokens) + self._depths[node]
        return np.array(
            [noise_key(self._stem.tokenized.request.seed, streams + COMPLETION_STREAM, place)], np.uint64
        )

"""Settling a round by the classic rejection rule, the second beside the shared noise. `LocalAuthor` may be given it.

The answers have the target's law, as with the shared noise, but which answer a seed gives depends on the strategy
and on how far it drafted: a replay must draft alike. Any strategy may be used. One that hands over the laws that it
drew from (`DraftTree.laws`, as `Drawn` does) is accepted most often; a guess without a law counts as certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from htfi.decoding.draft import DraftTree, depths
from htfi.decoding.noise import Doubles, Keys, key
from htfi.decoding.ports import Floats
from htfi.decoding.rules.entropy import EntropyAware
from htfi.decoding.rules.rejection import (
    COIN_STREAMS,
    REDRAW_STREAMS,
    ROOT,
    Fork,
    accept_tree,
    coins,
    drawn,
    laws,
)
from htfi.decoding.stem import ANSWER_STREAM, Stem
from htfi.decoding.strategy import Outcome

_WHOLE = np.ones(1)  # the law of a forced token


@dataclass(frozen=True, slots=True)
class Rejection:
    """Settles as `settle` does. With `entropy`, lossy: never for answers that a forecast distribution is made of."""

    entropy: EntropyAware | None = None

    def __call__(
        self, stems: Sequence[Stem], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[Outcome | None]:
        """One outcome a stem, None where a logit that decides is not a finite number.

        Shapes: logits [1 + n, V] for each stem: after its settled text, then after each of the tree's n nodes.
        """
        return [
            _Walk(stem, tree, after).outcome(self.entropy)
            for stem, tree, after in zip(stems, trees, logits, strict=True)
        ]


class _Walk:
    """One stem's tree as the rule looks at it."""

    def __init__(self, stem: Stem, tree: DraftTree, logits: Floats) -> None:
        self._stem, self._tree, self._logits = stem, tree, logits
        self._children = tree.children()
        self._depths: list[int] = [*(depths(tree.parents) + 1).tolist(), 0]  # the last is ROOT's
        self._is_finite = True

    def outcome(self, entropy: EntropyAware | None) -> Outcome | None:
        path, place = accept_tree(self._look, self._redraw, entropy)
        if not self._is_finite:
            return None
        said = [-1] * (len(self._tree) + 1)
        for before, node in zip((ROOT, *path), path, strict=False):
            said[before] = self._tree.tokens[node]
        here = path[-1] if path else ROOT
        token = self._tokens(here)[place] if place >= 0 else -1
        said[here] = token
        return Outcome(path, token, said, bool(np.isfinite(self._logits).all()))

    def _look(self, node: int) -> Fork | None:
        stem, form = self._stem, self._stem.asked.form
        state = self._state(node)
        if state == form.done:
            return None
        children, step = self._children[node], form.steps[state]
        if step.forced >= 0:
            held = [children[step.forced]] if step.forced in children else []
            return Fork(held, [0] * len(held), [0.5] * len(held), _WHOLE, None)
        (target,) = laws(self._logits[node + 1][None], step.admitted, stem.asked.sampling)
        if np.isnan(target[0]):
            self._is_finite = False
            return None
        ids = step.admitted.ids
        places: list[int] = np.searchsorted(ids, np.array([*children], np.int64)).tolist()
        flips = coins(self._key(COIN_STREAMS, node), step.admitted, places) if places else ()
        return Fork([*children.values()], places, flips, target, self._tree.laws.get(node))

    def _redraw(self, node: int, weights: Doubles) -> int:
        step = self._stem.asked.form.steps[self._state(node)]
        if step.forced >= 0:
            return 0
        return drawn(weights, step.admitted, self._key(REDRAW_STREAMS, node))[0]

    def _tokens(self, node: int) -> list[int]:
        step = self._stem.asked.form.steps[self._state(node)]
        return [step.forced] if step.forced >= 0 else step.admitted.ids.tolist()

    def _state(self, node: int) -> int:
        return self._tree.states[node] if node >= 0 else self._stem.state

    def _key(self, streams: int, node: int) -> Keys:
        place = len(self._stem.tokens) + self._depths[node]
        return np.array([key(self._stem.asked.request.seed, streams + ANSWER_STREAM, place)], np.uint64)

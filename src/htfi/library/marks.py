"""`htfi.verify_mark`: whether a text was written with a marking key, or by the readings of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from htfi.decoding.marking import MAX_MARK_POSITIONS, MarkEvidence, find_mark
from htfi.domain.counts import counted
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.wiring.marking import (
    make_key,
    open_key,
    open_marking_model,
    read_odds,
    recorded_choice,
    require_seeds,
    run_seeds,
    text_tokens,
    words_of,
)

USUAL_LIMIT = 1e-4  # of a p-value, below which a text counts as marked
MAX_TOKENS = 4_096  # of a text; the time that it takes grows with the square: some 20 s
_MAX_TOKEN_CHARS = 64


@dataclass(frozen=True, slots=True)
class MarkVerification:
    """How likely a text that has nothing to do with the key or run would point to it as strongly: `p_value`, at most.

    `source` names the key by its id, or the decisions of the run whose noise the text points to; the run, where it
    points to none.
    `capacity_nats` is the most evidence that such a text can hold on average: with a key, where the model wrote these
    tokens freely at the temperature; with a run, in the words of the reading that it is or points to, as its form and
    the model left them to chance. `needed_nats` is what p = 0.0001 takes. At temperature 0 a text holds none.

    Examples:
        >>> import tempfile, pathlib
        >>> import htfi
        >>> key = pathlib.Path(tempfile.mkdtemp(), "mark.key")
        >>> name = htfi.make_mark_key(key)
        >>> found = htfi.verify_mark("The market closed higher on Friday.", key)
        >>> found.p_value <= 1.0, found.source == f"key {name}"
        (True, True)
    """

    p_value: float
    num_tokens: int
    num_seeds: int
    source: str
    capacity_nats: float
    needed_nats: float

    def __str__(self) -> str:
        return f"p = {self.p_value:.1e}: {self.num_tokens} tokens, {self.num_seeds:,} seeds of {self.source}"


def make_mark_key(path: str | Path) -> str:
    """Make a marking key in a new file that only its owner may read; its id.

    Raises: InvalidInput, DependencyUnavailable.

    Examples:
        >>> import tempfile, pathlib
        >>> import htfi
        >>> len(htfi.make_mark_key(pathlib.Path(tempfile.mkdtemp(), "mark.key")))
        16
    """
    return make_key(Path(path)).id


def verify_mark(
    text: str,
    key: str | Path | None = None,
    *,
    run: str | Path | None = None,
    model: str | Path | None = None,
    temperature: float = 1.0,
) -> MarkVerification:
    """Look for the noise of a key, or of a run's readings, in a text that may be edited or an excerpt.

    `model` is the folder of the model that wrote, the shipped target without it. With a run the seeds are those that it
    recorded; where it had a marking key they follow from that key, mark.key in its folder or `key`. Without one they
    are no secret: this shows which decision a text came from and not that nobody forged it. A text has 4,096 tokens at
    most.
    Raises: InvalidInput, IntegrityError, LedgerUnavailable, DependencyUnavailable.

    Examples:
        >>> import tempfile, pathlib
        >>> import htfi
        >>> key = pathlib.Path(tempfile.mkdtemp(), "mark.key")
        >>> name = htfi.make_mark_key(key)
        >>> write = htfi.load_pair().generate
        >>> texts = [write("Shares of Acme fell after", temperature=1.0, seed=n, mark_key=key) for n in range(8)]
        >>> longest = max(texts, key=lambda text: len(text.tokens))  # a short text leaves little to find
        >>> htfi.verify_mark(str(longest), key).p_value < 1e-4
        True
    """
    if key is None and run is None:
        raise InvalidInput("give a marking key, the folder of a run, or both")
    folder = None if model is None else Path(model)
    opened = open_marking_model(folder)
    ids = text_tokens(opened.vocabulary, text[: MAX_TOKENS * _MAX_TOKEN_CHARS])
    if not ids:
        raise InvalidInput("the text is empty: there is nothing to look for a mark in")
    if len(ids) > MAX_TOKENS or len(text) > MAX_TOKENS * _MAX_TOKEN_CHARS:
        raise InvalidInput(
            f"the text has more than {MAX_TOKENS:,} tokens, which would take minutes: name a passage of it; some 60 "
            "tokens show a mark"
        )
    odds, capacity = read_odds(opened, ids, temperature)
    mark_key = open_key(Path(key)) if key is not None else None
    if run is None:
        assert mark_key is not None
        seeds = mark_key.seeds()
        found = find_mark(ids, seeds, MAX_MARK_POSITIONS, odds)
        return _verification(found, f"key {mark_key.id}", capacity)
    recorded = run_seeds(Path(run), mark_key)
    require_seeds(recorded, Path(run))
    seeds = list(recorded.decisions_of)
    found = find_mark(ids, seeds, recorded.max_tokens, odds)
    pointed = recorded.decisions_of[seeds[found.place]]
    known = [one for one in recorded.decisions() if words_of(one) == text.strip()]
    held = recorded_choice(Path(run), (known or pointed)[0], folder).capacity_nats
    return _verification(found, _named(known or pointed, found, Path(run)), held)


def _named(decisions: Sequence[Decision], found: MarkEvidence, run: Path) -> str:
    """The decisions that a text points to; the run, where the noise points to none."""
    if found.p_value > USUAL_LIMIT:
        return f"the run {run}"
    first, *others = decisions
    return first.id if not others else f"{first.id} or {counted(len(others), 'other')}"


def _verification(found: MarkEvidence, source: str, capacity_nats: float) -> MarkVerification:
    needed = math.log(found.num_seeds / USUAL_LIMIT)
    return MarkVerification(found.p_value, found.num_tokens, found.num_seeds, source, capacity_nats, needed)

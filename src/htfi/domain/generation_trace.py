"""How a model came to an answer, in the form that the ledger keeps: what it was shown, its tokens and its rounds."""

import msgspec

from htfi.domain.generation import DraftRound, RuleTrace


class PromptItem(msgspec.Struct, frozen=True, gc=False):
    """An item of the news as a model was shown it."""

    id: str
    available_at_ns: int
    symbols: tuple[str, ...]
    headline: str
    # Marks of its facts (`narrative.fact_marks`), as tokens or words in the prompt. Unset where none were shown.
    facts: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class StateDigests(msgspec.Struct, frozen=True, gc=False):
    """SHA-256 (hex) of what a model computed for an answer, as little-endian float32: its last hidden states [N, H]
    before each of the N tokens, and the last layer's attention of these positions [N, A, T] over all T that it read.

    `words`: for each item that it was shown, the weight of each word of the headline, in 1e-4 nats: what it adds to
    the log likelihood of the answer (`pipeline.audit.attribution`). Empty where none was weighed.
    """

    hidden: str
    attention: str
    words: tuple[tuple[int, ...], ...] = ()


class GenerationTrace(msgspec.Struct, frozen=True, gc=False):
    """How a model came to a view, so that its tokens can be written again: `htfi ledger replay`.

    The token at place t is the target's argmax of logits over temperature plus the noise of (seed, t), among what
    the form of an answer on `num_items` headlines admits. `rounds` record what was drafted and what was accepted: they
    decide how long it took and nothing else.
    """

    target: str  # name and version of who decided
    draft: str  # name and version of the draft model; empty without one
    strategy: str
    seed: int
    temperature: float
    num_items: int
    prompt: tuple[int, ...]  # token ids
    tokens: tuple[int, ...]
    rounds: tuple[DraftRound, ...]
    place: str = ""  # where the target wrote, where that was another machine
    num_verified: int = msgspec.field(
        default=-1, name="num_settled"
    )  # tokens that the target accepted, the draft writing the others; −1: all
    paths: tuple[
        tuple[int, ...], ...
    ] = ()  # of several answers, all their tokens; path k has the seed `path_seed`
    # Fields below are left out of an entry where they are UNSET: entries of version 0.1.0 have none of them.
    shown: tuple[PromptItem, ...] | msgspec.UnsetType = msgspec.UNSET  # the items in the prompt, in its order
    asked_ns: int | msgspec.UnsetType = (
        msgspec.UNSET
    )  # the instant asked about, where it is not the decision's
    rule: RuleTrace | msgspec.UnsetType = (
        msgspec.UNSET
    )  # how drafts were accepted, if not by the shared noise
    states: StateDigests | msgspec.UnsetType = msgspec.UNSET  # where `narrative.trace` is on

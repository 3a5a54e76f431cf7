"""What a language model is asked and what it answers. Narrative asks, decoding and remote engines write.

Control tokens come from code alone. Text from outside is a `PlainText`, and is read as text, whatever it contains
(docs/decisions/d11-text-is-data.md).
"""

from enum import StrEnum

import msgspec


class ControlToken(msgspec.Struct, frozen=True, gc=False):
    """One control token, by its name: ControlToken('news') is the token '<news>'."""

    name: str


class PlainText(msgspec.Struct, frozen=True, gc=False):
    """Plain text; nothing in it is a control token."""

    text: str


class ScaledMoves(msgspec.Struct, frozen=True, gc=False):
    """Returns in units of the EWMA volatility before each, oldest first: one price token each."""

    values: tuple[float, ...]


PromptSegment = ControlToken | PlainText | ScaledMoves
Prompt = tuple[PromptSegment, ...]


class FixedField(msgspec.Struct, frozen=True):
    """A fixed part of the answer: put in without asking the model."""

    segments: Prompt


class ChoiceField(msgspec.Struct, frozen=True):
    """One of `options`; the field of this name holds its index as text."""

    name: str
    options: tuple[Prompt, ...]


class FreeTextField(msgspec.Struct, frozen=True):
    """Free words without a digit, ended by `end` or cut at `max_tokens`; `slots` are the control tokens they may hold.

    The field of this name holds the words, a slot as its name in braces.
    """

    name: str
    max_tokens: int
    end: PromptSegment
    slots: tuple[ControlToken, ...] = ()


class AnyTextField(FreeTextField, frozen=True):
    """Free text of any plain tokens, digits and line ends included: what a person asks a model to write."""


OutputGrammar = tuple[FixedField | ChoiceField | FreeTextField, ...]


class PromptDialect(StrEnum):
    """The form of a model's prompts: control and price tokens, without or with those of facts, or plain words."""

    MINI = "mini"
    MINI_FACTS = "mini with facts"
    PLAIN = "plain"

    @property
    def is_mini(self) -> bool:
        """Whether prompts and answers are of control tokens."""
        return self is not PromptDialect.PLAIN


class GenerationRequest(msgspec.Struct, frozen=True):
    """One question. At temperature 0 the likeliest token is taken and the seed changes nothing.

    `shared` counts the leading segments of the prompt that other questions are likely to share. `kind` names the sort
    of question: how well a draft does is learned for each apart. `max_draft` bounds the tokens drafted at once for
    this request: 0 opts out of speculation, None leaves it to the planner; the answer is the same. `suspicion`
    0–1: how strongly manipulation of its subject is suspected; its work queues behind other work.
    """

    prompt: Prompt
    form: OutputGrammar
    seed: int = 0
    temperature: float = 0.0
    deadline_ms: float = 1_000.0
    shared: int = 0
    kind: str = ""
    max_draft: int | None = None
    top_k: int = 0  # 0 keeps all tokens
    top_p: float = 1.0
    id: str = ""  # the same question asked again has the same; it is not answered twice
    residency: frozenset[str] = frozenset()  # tags of data that may only go where they are admitted
    suspicion: float = 0.0
    in_full: bool = (
        False  # by the target in full precision, where there are clouds: elsewhere the generator is that
    )
    subjects: tuple[str, ...] = ()  # names of what the prompt contains, for caches that must forget it


class DraftRound(msgspec.Struct, frozen=True, gc=False):
    """One round of speculation: what was drafted, how far the target agreed, and its next token.

    `parents` describe a tree (the node before each, −1 the accepted text); empty for a chain. `accepted` are the nodes
    that stood, from the first on; `token` is the target's own next one, −1 where the answer ended.
    """

    drafted: tuple[int, ...]
    parents: tuple[int, ...]
    accepted: tuple[int, ...]
    token: int


class RuleTrace(msgspec.Struct, frozen=True, gc=False):
    """The rule that accepted drafted tokens, if not the shared noise, and what a replay needs of it.

    The rule's random numbers are noise of (request seed, stream, position); drafts, acceptance and resampling read
    streams of their own. `widths`: how many siblings were sampled from the draft's distribution after each node, by
    depth, the last for all deeper ones; empty where guesses were not sampled and count as certain.
    """

    name: str
    draft_stream: int
    accept_stream: int
    resample_stream: int
    widths: tuple[int, ...] = ()
    # Of the entropy-aware rule: when a token is sampled again.
    threshold_nats: float | msgspec.UnsetType = msgspec.UNSET
    top_n: int | msgspec.UnsetType = msgspec.UNSET
    overlap: float | msgspec.UnsetType = msgspec.UNSET


class Completion(msgspec.Struct, frozen=True):
    """An answer that follows its grammar: every field by name, and the tokens as they were written."""

    fields: dict[str, str]
    tokens: tuple[int, ...] = ()
    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0  # of the prompt, found already read
    prompt: tuple[int, ...] = ()
    strategy: str = ""
    draft: str = ""  # name and version of the draft, where one guessed ahead
    rounds: tuple[DraftRound, ...] = ()  # one for each pass of the target after the prompt's
    place: str = ""  # where it was written, where it was not here: 'cloud1, in flight'
    num_verified: int = -1  # tokens that the target accepted, the others being the draft's own; −1: all
    rule: RuleTrace | None = None  # None: drafted tokens were accepted by the shared noise

    @property
    def is_provisional(self) -> bool:
        """Whether the target has not written all of it; its answer comes later."""
        return self.num_verified >= 0


class SpeculationStats(msgspec.Struct, frozen=True):
    """Statistics of a generator's speculation so far. `acceptance`: the share of drafted places that were accepted."""

    num_answers: int
    num_tokens: int
    num_passes: int
    acceptance: float
    alarm: str = ""  # where acceptance has fallen below its usual range
    rule: str = ""  # that accepts drafted tokens, if not the shared noise
    num_drafted: int = 0  # tokens that the grammar left open
    num_accepted: int = 0  # of these


class RequestRefused(msgspec.Struct, frozen=True):
    """No answer, and why: no capacity, no time, no budget."""

    reason: str

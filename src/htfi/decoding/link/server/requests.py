"""A request at the cloud, its subscribers, and the checks of greetings, requests and windows before any work.

A request is answered once, however many edges subscribe to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from htfi.decoding.config import MAX_PROMPT_PARTS, VerificationServerConfig
from htfi.decoding.engine import GenerationJob
from htfi.decoding.link.frames import (
    NAME_BYTES,
    PROTOCOL,
    DraftMode,
    DraftWindowFrame,
    HelloFrame,
    OpenFrame,
    RefusalReason,
    WelcomeFrame,
    prefix_hash,
    unpack,
)
from htfi.decoding.link.parts import request_name
from htfi.decoding.sampling import SamplingParams, check_sampling_params
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import GenerationRequest, OutputGrammar

EDGE_DRAFTED = (DraftMode.LOCKSTEP, DraftMode.PIPELINED)  # an edge drafts


@dataclass(slots=True, eq=False)
class RequestSubscriber:
    """One edge's interest in a request: a handle on its stream. `request` is None until all parts have arrived.

    `awaited` are missing parts, `early` the windows that came before the request could be created. `num_sent` tokens
    were sent in this epoch; `num_accepted` guesses were accepted since then, −1 if none were read.
    """

    stream: str
    tenant: str
    opened: OpenFrame
    since_s: float
    request: "ServerRequest | None" = None
    awaited: set[bytes] = field(default_factory=set[bytes])
    early: list[DraftWindowFrame] = field(default_factory=list[DraftWindowFrame])
    num_sent: int = 0
    num_accepted: int = -1
    num_bytes: int = 0
    is_stale_notified: bool = False
    last_sent_s: float = float("-inf")  # when tokens were last sent to it
    due_s: float = 0.0  # when the next tokens are to be sent

    @property
    def handle(self) -> int:
        return self.opened.handle

    @property
    def epoch(self) -> int:
        return self.opened.epoch

    @property
    def is_spent(self) -> bool:
        """Whether its budget is used up; 0 means no budget."""
        return 0 < self.opened.budget_bytes <= self.num_bytes

    def reopen(self, asked: OpenFrame, now_s: float) -> None:
        """Continue under a higher epoch: earlier tokens may have been discarded, so all are sent again."""
        self.opened, self.since_s = asked, now_s
        self.early.clear()
        self.num_sent, self.num_accepted, self.is_stale_notified = 0, -1, False


@dataclass(slots=True, eq=False)
class ServerRequest:
    """One request and its answer; the latest subscriber says who drafts.

    `was_served_s` is when it last had the engine. `is_patient`: in lock-step, whether it still waits for windows.
    """

    key: int
    name: bytes
    tenant: str
    job: GenerationJob
    since_s: float
    deadline_s: float
    was_served_s: float
    subscribers: list[RequestSubscriber] = field(default_factory=list[RequestSubscriber])
    lead: DraftMode = DraftMode.PLAIN
    is_patient: bool = True
    num_drafted: int = 0  # in the latest pass
    num_read_ahead: int = 0  # of its prompt, into the cache
    hashed: int = 0  # of all accepted tokens
    num_hashed: int = 0
    suspicion: float = 0.0  # 0–1, from its first subscriber
    traceparent: str = ""  # of its first subscriber
    span_id: int = 0  # of its own span, once it has one

    @classmethod
    def of(
        cls, key: int, subscriber: RequestSubscriber, asked: TokenizedRequest, now_s: float
    ) -> "ServerRequest":
        job = GenerationJob(key, SequenceState(asked, list(asked.forced_prefix), asked.start_state))
        deadline_s = now_s + subscriber.opened.deadline_ms / 1e3
        doubt = min(max(subscriber.opened.suspicion, 0), 1000) / 1e3
        return cls(
            key,
            subscriber.opened.request,
            subscriber.tenant,
            job,
            now_s,
            deadline_s,
            now_s,
            suspicion=doubt,
            traceparent=subscriber.opened.traceparent,
        )

    @property
    def sequence(self) -> SequenceState:
        return self.job.sequence

    @property
    def in_full(self) -> bool:
        """Whether the target answers it in full precision."""
        return self.sequence.tokenized.request.in_full

    @property
    def kind(self) -> str:
        return self.sequence.tokenized.request.kind

    @property
    def num_to_read(self) -> int:
        """Tokens of its prompt that are still to be read."""
        asked = self.sequence.tokenized
        return len(asked.prompt) + len(asked.forced_prefix) - self.num_read_ahead

    def prefix(self) -> int:
        """The hash of all accepted tokens."""
        tokens = self.sequence.tokens
        if self.num_hashed < len(tokens):
            self.hashed = prefix_hash(tokens[self.num_hashed :], self.hashed)
            self.num_hashed = len(tokens)
        return self.hashed

    def wanted_lead(self, has_draft: bool) -> DraftMode:
        """Who drafts: as the latest subscriber says, unless its budget is used up or it has left."""
        here = DraftMode.CLOUD if has_draft else DraftMode.PLAIN
        for subscriber in reversed(self.subscribers):
            lead = DraftMode(subscriber.opened.draft_mode)
            if lead not in EDGE_DRAFTED:
                return here if lead is DraftMode.CLOUD else DraftMode.PLAIN
            return here if subscriber.is_spent else lead
        return here


def tokens_left(entry: ServerRequest, expected: float) -> float:
    """Expected remaining tokens, at least one, of an answer with `expected` tokens."""
    return max(expected - len(entry.sequence.tokens), 1.0)


def suspicion_by_tenant(entries: Sequence[ServerRequest]) -> dict[str, float]:
    """Mean suspicion of each tenant's requests, 0–1; tenants without suspicion are left out."""
    if not any(entry.suspicion for entry in entries):
        return {}
    by_tenant: dict[str, list[float]] = {}
    for entry in entries:
        by_tenant.setdefault(entry.tenant, []).append(entry.suspicion)
    return {tenant: mean for tenant, all_of in by_tenant.items() if (mean := sum(all_of) / len(all_of)) > 0.0}


def active_tenants(entries: Sequence[ServerRequest]) -> frozenset[str]:
    return frozenset(entry.tenant for entry in entries)


_MAX_KIND = 64
_MAX_NODE = 200
_MAX_HANDLE = 1 << 53
_LEADS = frozenset(int(lead) for lead in DraftMode)


def check_hello(hello: HelloFrame, welcome: WelcomeFrame, node: str) -> tuple[RefusalReason, str] | None:
    """Why an edge with this greeting is not served, or None. `node` is its certificate's name, '' without one."""
    if hello.version != PROTOCOL:
        return RefusalReason.VERSION, (
            f"{welcome.node} speaks protocol {PROTOCOL}, {hello.node[:_MAX_NODE]} speaks {hello.version}: "
            "run releases with the same protocol on both"
        )
    if not 0 < len(hello.node) <= _MAX_NODE or (node and hello.node != node):
        return (
            RefusalReason.IDENTITY,
            f"the edge calls itself '{hello.node[:_MAX_NODE]}', its certificate says '{node}'",
        )
    if hello.target and not welcome.target.startswith(hello.target):
        return RefusalReason.DIGEST, (
            f"{welcome.node} has the target {welcome.target[:12]}, the edge expects {hello.target[:12]}: "
            "point both at the same model"
        )
    if hello.tokenizer != welcome.tokenizer:
        return RefusalReason.DIGEST, (
            f"{welcome.node} has the tokenizer {welcome.tokenizer[:12]}, the edge {hello.tokenizer[:12]}: "
            "use a draft and a target of one family"
        )
    return None


def check_open(
    asked: OpenFrame, config: VerificationServerConfig, *, has_full: bool
) -> tuple[RefusalReason, str] | None:
    """Why a request is invalid or may not come here, or None.

    `has_full`: the target is here in full precision too.
    """
    if asked.in_full and not has_full:
        return RefusalReason.UNANSWERABLE, f"{config.node} does not have the target in full precision"
    if not 0 <= asked.handle < _MAX_HANDLE or asked.epoch < 0:
        return RefusalReason.MALFORMED, "a handle and an epoch are counts"
    names = (asked.request, asked.grammar, *asked.prompt)
    if not 0 < len(asked.prompt) <= MAX_PROMPT_PARTS or any(len(name) != NAME_BYTES for name in names):
        return (
            RefusalReason.MALFORMED,
            f"a prompt has 1 to {MAX_PROMPT_PARTS} parts, named by {NAME_BYTES} bytes each",
        )
    if (
        asked.draft_mode not in _LEADS
        or asked.deadline_ms < 0
        or asked.budget_bytes < 0
        or len(asked.kind) > _MAX_KIND
    ):
        return RefusalReason.MALFORMED, "a lead, deadline, budget or kind out of range"
    sampling = SamplingParams(asked.temperature, asked.top_k, asked.top_p)
    try:
        check_sampling_params(sampling)
    except InvalidInput as error:
        return RefusalReason.UNANSWERABLE, str(error)
    named = request_name(asked.prompt, asked.grammar, asked.seed, sampling, in_full=asked.in_full)
    if asked.request != named:
        return RefusalReason.MALFORMED, "the request's name does not match its content"
    if foreign := set(asked.residency) - set(config.residency):
        by_tenant = ", ".join(sorted(foreign))[:200]
        return RefusalReason.RESIDENCY, f"data tagged {by_tenant} may not be sent to {config.node}"
    return None


def to_request(
    asked: OpenFrame, grammar: OutputGrammar, parts: dict[bytes, bytes]
) -> tuple[GenerationRequest, list[int], int]:
    """The request, its prompt's ids, and how many of them are likely to be shared. Raises: InvalidInput."""
    ids = [unpack(parts[name]) for name in asked.prompt]
    request = GenerationRequest(
        (),
        grammar,
        asked.seed,
        asked.temperature,
        float(asked.deadline_ms),
        kind=asked.kind,
        top_k=asked.top_k,
        top_p=asked.top_p,
        in_full=asked.in_full,
    )
    return request, [token for part in ids for token in part], len(ids[0]) if len(ids) > 1 else 0


def unpack_guesses(packed: bytes, at: int, sequence: SequenceState, vocab_size: int) -> list[int]:
    """Guesses for the positions from `at` on. Raises: InvalidInput if one lies outside answer or vocabulary."""
    ids = unpack(packed)
    longest = sequence.tokenized.grammar.max_tokens
    if not 0 <= at <= at + len(ids) <= longest:
        raise InvalidInput(f"{len(ids)} guesses from place {at} on, of an answer of at most {longest} tokens")
    if ids and max(ids) >= vocab_size:
        raise InvalidInput(f"a guess outside the vocabulary: {max(ids)} of {vocab_size}")
    return ids


def is_plausible(window: DraftWindowFrame) -> bool:
    """Whether an early window may be kept until its request is known."""
    return window.at >= 0 and len(window.ids) < 1 << 16

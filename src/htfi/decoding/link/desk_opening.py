"""What a greeting, a request and its windows may be: pure checks, before anything is done for them."""

from htfi.decoding.link.desk_config import DeskConfig
from htfi.decoding.link.frames import NAME_BYTES, PROTOCOL, Hello, Lead, Open, Welcome, Why, Window, unpack
from htfi.decoding.link.parts import request_name
from htfi.decoding.sampling import Sampling, check_sampling
from htfi.decoding.stem import Stem
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Form, Request

_MAX_KIND = 64
_MAX_NODE = 200
_MAX_HANDLE = 1 << 53
_LEADS = frozenset(int(lead) for lead in Lead)


def greeting_refusal(hello: Hello, welcome: Welcome, node: str) -> tuple[Why, str] | None:
    """Why an edge that greets so is not served, None where it is. `node` is its certificate's, '' without one."""
    if hello.version != PROTOCOL:
        return Why.VERSION, (
            f"{welcome.node} speaks protocol {PROTOCOL}, {hello.node[:_MAX_NODE]} speaks {hello.version}: "
            "let both run releases of the same protocol"
        )
    if not 0 < len(hello.node) <= _MAX_NODE or (node and hello.node != node):
        return (
            Why.IDENTITY,
            f"the edge calls itself '{hello.node[:_MAX_NODE]}', its certificate says '{node}'",
        )
    if hello.target and not welcome.target.startswith(hello.target):
        return Why.DIGEST, (
            f"{welcome.node} has the target {welcome.target[:12]}, the edge expects {hello.target[:12]}: "
            "point both at the same model"
        )
    if hello.tokenizer != welcome.tokenizer:
        return Why.DIGEST, (
            f"{welcome.node} has the tokenizer {welcome.tokenizer[:12]}, the edge {hello.tokenizer[:12]}: "
            "take draft and target from one family"
        )
    return None


def open_refusal(asked: Open, config: DeskConfig, *, has_full: bool) -> tuple[Why, str] | None:
    """Why a request cannot be what it says, or may not come here; None where it can and may.

    `has_full`: the target is here in full precision too.
    """
    if asked.in_full and not has_full:
        return Why.CANNOT, f"{config.node} does not have the target in full precision"
    if not 0 <= asked.handle < _MAX_HANDLE or asked.epoch < 0:
        return Why.MALFORMED, "a handle and an epoch are counts"
    names = (asked.request, asked.form, *asked.prompt)
    if not 0 < len(asked.prompt) <= config.max_prompt_parts or any(len(name) != NAME_BYTES for name in names):
        return (
            Why.MALFORMED,
            f"a prompt has 1 to {config.max_prompt_parts} parts, named by {NAME_BYTES} bytes each",
        )
    if (
        asked.lead not in _LEADS
        or asked.deadline_ms < 0
        or asked.budget_bytes < 0
        or len(asked.kind) > _MAX_KIND
    ):
        return Why.MALFORMED, "a lead, deadline, budget or kind out of its range"
    sampling = Sampling(asked.temperature, asked.top_k, asked.top_p)
    try:
        check_sampling(sampling)
    except InvalidInput as error:
        return Why.CANNOT, str(error)
    named = request_name(asked.prompt, asked.form, asked.seed, sampling, in_full=asked.in_full)
    if asked.request != named:
        return Why.MALFORMED, "the request is not named after what it asks"
    if foreign := set(asked.residency) - set(config.residency):
        told = ", ".join(sorted(foreign))[:200]
        return Why.RESIDENCY, f"data tagged {told} may not come to {config.node}"
    return None


def question(asked: Open, form: Form, parts: dict[bytes, bytes]) -> tuple[Request, list[int], int]:
    """The request, its prompt's ids, and how many of them others are likely to share. Raises: InvalidInput."""
    ids = [unpack(parts[name]) for name in asked.prompt]
    request = Request(
        (),
        form,
        asked.seed,
        asked.temperature,
        float(asked.deadline_ms),
        kind=asked.kind,
        top_k=asked.top_k,
        top_p=asked.top_p,
        in_full=asked.in_full,
    )
    return request, [token for part in ids for token in part], len(ids[0]) if len(ids) > 1 else 0


def guesses(packed: bytes, at: int, stem: Stem, vocab_size: int) -> list[int]:
    """The tokens guessed for the places from `at` on. Raises: InvalidInput where one lies outside the answer or the
    vocabulary."""
    ids = unpack(packed)
    longest = stem.asked.form.longest
    if not 0 <= at <= at + len(ids) <= longest:
        raise InvalidInput(f"{len(ids)} guesses from place {at} on, of an answer of at most {longest} tokens")
    if ids and max(ids) >= vocab_size:
        raise InvalidInput(f"a guess that is no token: {max(ids)} of {vocab_size}")
    return ids


def is_plausible(window: Window) -> bool:
    """Whether a window that nothing is known about yet may be kept until something is."""
    return window.at >= 0 and len(window.ids) < 1 << 16

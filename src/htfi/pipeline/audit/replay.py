"""Generates a recorded reading again: the same tokens from the same seed and target, for `htfi ledger replay`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from msgspec import UnsetType
from msgspec.structs import replace

from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Network
from htfi.decoding.rules.rejection import RejectionRule
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.recorded import RecordedStrategy
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision, GenerationTrace, NewsView, try_decode_decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused, RuleTrace
from htfi.narrative.answer import ConfidenceCalibration, ParsedAnswer, parse_answer, view_grammar
from htfi.narrative.deep_reader import combine_answers, combine_meanings, path_seed
from htfi.narrative.merging import unmerged
from htfi.narrative.view_calibration import ViewCalibration
from htfi.pipeline.audit.readings import first_difference
from htfi.pipeline.audit.token_text import TokenText


class ModelRole(StrEnum):
    """What a model did for a reading."""

    TARGET = "target"
    DRAFT = "draft"


class ReplayModel(Protocol):
    """A model that a trace names, ready to load."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def network(self) -> Network: ...

    @property
    def draft_network(self) -> Network: ...

    @property
    def trust(self) -> ConfidenceCalibration: ...

    @property
    def meaning(self) -> ViewCalibration | None: ...

    def author(self, config: DecodingConfig) -> LocalGenerator: ...

    def generator(
        self,
        network: Network,
        config: DecodingConfig,
        strategy: RecordedStrategy | None = None,
        rule: RejectionRule | None = None,
    ) -> LocalGenerator:
        """A generator on one of its networks, without cached prompts."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayedReading:
    """A reading written twice more, plainly and with the recorded drafts. `problems` is empty where all agrees."""

    wording: GenerationTrace
    writing: Completion
    vocabulary: Vocabulary
    problems: list[str]


def newest_reading(entries: Iterable[bytes]) -> Decision:
    """The last decision for which a model of ours read. Raises: InvalidInput where there is none."""
    newest: bytes | None = None
    for entry in entries:
        if b'"wording":{' in entry:
            newest = entry
    found = try_decode_decision(newest) if newest is not None else None
    if found is None:
        raise InvalidInput(
            "no decision here was read for by a model of ours: there are no words to write again"
        )
    return found


def reading_of(decision: Decision, entries: Iterable[bytes]) -> Decision:
    """The decision for which this one's view was read: itself, or an earlier one of the same series.

    A view that the target told late is that of an amendment. Raises: InvalidInput where no model read for it.
    """
    view = decision.view
    if view is None:
        raise InvalidInput(f"{decision.id}: no news was read for it, so there are no words to write again")
    if view.wording is not None:
        return decision
    read = unmerged(view)
    if read is not None:
        for entry in entries:
            found = try_decode_decision(entry)
            if found is None or found.series != decision.series or found.as_of_ns != read.as_of_ns:
                continue
            kept = unmerged(found.view) if found.view is not None else None
            if kept is None or kept.wording is None:
                continue
            if "readings" not in decision.models:  # a merged view did not tell whether it is provisional
                kept = replace(kept, provisional=read.provisional)
            if _without_wording(kept) == _without_wording(read):
                return found
    raise InvalidInput(
        f"{decision.id}: its view ({view.reader or 'no reader'}) was not worded by a model of ours: nothing to replay"
    )


def replay_reading(
    decision: Decision, config: DecodingConfig, open_model: Callable[[str, ModelRole], ReplayModel]
) -> ReplayedReading:
    """Generate the view of a decision again from its trace.

    `open_model` opens the model of a version in a role. Where the target ran does not matter: its tokens are the same.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    view = (
        unmerged(decision.view) if decision.view is not None else None
    )  # what was read, before it was merged
    if view is None or view.wording is None:
        raise InvalidInput(f"{decision.id} holds no wording")
    wording = view.wording
    opened = open_model(wording.target, ModelRole.TARGET)
    vocabulary = opened.vocabulary
    request = GenerationRequest(
        prompt=(),
        form=view_grammar(vocabulary.dialect, wording.num_items),
        seed=wording.seed,
        temperature=wording.temperature,
        kind="view",
    )
    if wording.paths:
        return _replay_paths(opened, config, view, wording, request, vocabulary)
    spell = TokenText.of(vocabulary)
    if isinstance(wording.rule, UnsetType):
        plain = _decode_again(opened.author(config), wording, request)
        problems = _check_target_tokens(plain, wording, spell)
        problems += _check_recorded_drafts(opened, config, wording, request, plain)
    else:  # the answer depends on the drafts: it is reproduced along them alone
        drafter = open_model(wording.draft, ModelRole.DRAFT) if wording.rule.widths else None
        plain, problems = _replay_rule(opened, drafter, config, wording, wording.rule, request)
        if told := first_difference(wording.tokens, plain.tokens, spell):
            problems.append(f"along the recorded drafts the target writes other tokens: {told}")
    writing, finisher = plain, opened
    if wording.num_settled >= 0:
        finisher = open_model(wording.draft, ModelRole.DRAFT)
        writing = _finish_with_draft(finisher, config, wording, request) or plain
        if told := first_difference(wording.tokens, writing.tokens, spell):
            problems.append(f"the draft, going on from what the target settled, writes other tokens: {told}")
    if (view.provisional and not view.prepared) != (wording.num_settled >= 0):
        problems.append("whether the view is provisional does not follow from who wrote it")
    if not problems and _view_from_tokens(writing, finisher, view) != _without_wording(view):
        problems.append("the view does not follow from the tokens")
    return ReplayedReading(wording, writing, vocabulary, problems)


def _replay_paths(
    opened: ReplayModel,
    config: DecodingConfig,
    view: NewsView,
    wording: GenerationTrace,
    request: GenerationRequest,
    vocabulary: Vocabulary,
) -> ReplayedReading:
    """A reading in depth: every answer again from its own seed, and what they come to together."""
    author = opened.author(config)
    written = [
        _decode_again(author, wording, replace(request, seed=path_seed(wording.seed, path)))
        for path in range(len(wording.paths))
    ]
    spell = TokenText.of(vocabulary)
    problems = [
        f"the target writes other tokens in answer {path}: {differing}"
        for path, (told, tokens) in enumerate(zip(written, wording.paths, strict=True))
        if (differing := first_difference(tokens, told.tokens, spell))
    ]
    said, nearest = combine_answers([parse_answer(told.fields, opened.trust) for told in written])
    if written[nearest].tokens != wording.tokens:
        problems.append("the answer that stands for all is another")
    if view.provisional or wording.num_settled >= 0:
        problems.append("whether the view is provisional does not follow from who wrote it")
    each = [_with_understanding(parse_answer(told.fields, opened.trust), view) for told in written]
    meant = combine_meanings(each, opened.meaning) if opened.meaning is not None else ()
    if not problems and replace(_with_understanding(said, view), meant=meant) != _without_wording(view):
        problems.append("the view does not follow from the tokens")
    return ReplayedReading(wording, written[nearest], vocabulary, problems)


def _check_target_tokens(
    plain: Completion, wording: GenerationTrace, spell: Callable[[int], str]
) -> list[str]:
    """Whether the target, decoding alone, writes the tokens that are said to be its own."""
    if wording.num_settled < 0:
        told = first_difference(wording.tokens, plain.tokens, spell)
        return [f"the target, decoding alone, writes other tokens: {told}"] if told else []
    num = wording.num_settled
    if num >= len(wording.tokens):
        return [f"{num} of {len(wording.tokens)} tokens are said to be settled: nothing is left to the draft"]
    told = first_difference(wording.tokens[:num], plain.tokens[:num], spell)
    words = f"the target, decoding alone, does not begin with the {num} tokens said to be its own: {told}"
    return [words] if told else []


def _check_recorded_drafts(
    opened: ReplayModel,
    config: DecodingConfig,
    wording: GenerationTrace,
    request: GenerationRequest,
    plain: Completion,
) -> list[str]:
    """What the target finds otherwise on the recorded drafts. An edge may not have seen the last rounds elsewhere."""
    try:
        drafted = _decode_again(
            opened.generator(opened.network, config, RecordedStrategy(wording.rounds)), wording, request
        )
    except IntegrityError as error:
        return [f"the recorded drafts cannot be verified again: {error}"]
    problems: list[str] = []
    if drafted.tokens != plain.tokens:
        problems.append("the target, verifying the recorded drafts, writes other tokens")
    seen = drafted.rounds[: len(wording.rounds)] if wording.place else drafted.rounds
    if seen != wording.rounds:
        problems.append("the target finds otherwise on a recorded draft")
    return problems


def _replay_rule(
    opened: ReplayModel,
    drafter: ReplayModel | None,
    config: DecodingConfig,
    wording: GenerationTrace,
    trace: RuleTrace,
    request: GenerationRequest,
) -> tuple[Completion, list[str]]:
    """The answer along the recorded drafts under the recorded rule, and what differs.

    The draft model samples its drafts again, by one of its engines, whose logits may differ in the last bits.
    Raises: IntegrityError for a draft that is not the draft model's, or a rule that this program does not have.
    """
    rule = RejectionRule.from_trace(trace)
    problems = (
        []
        if trace.name == config.rule
        else [f"the settings name the rule '{config.rule}', not '{trace.name}'"]
    )
    engines = (drafter.draft_network, drafter.network) if drafter is not None else (None,)
    found: Completion | None = None
    failed: IntegrityError | None = None
    for network in engines:
        sampled = SampledStrategy(KVSessions(network, config), trace.widths) if network is not None else None
        try:
            generator = opened.generator(
                opened.network, config, RecordedStrategy(wording.rounds, sampled), rule
            )
            found = _decode_again(generator, wording, request)
        except IntegrityError as error:
            failed = failed or error
            continue
        if found.tokens == wording.tokens and found.rounds == wording.rounds:
            return found, problems
    if found is None:
        raise failed or IntegrityError("the recorded drafts cannot be verified again")
    for number, (recorded, again) in enumerate(zip(wording.rounds, found.rounds, strict=False), 1):
        if recorded != again:
            problems.append(f"in round {number} the target accepts other tokens than recorded")
            break
    if len(wording.rounds) != len(found.rounds):
        problems.append(f"{len(wording.rounds)} rounds are recorded, {len(found.rounds)} were needed")
    return found, problems


def _finish_with_draft(
    opened: ReplayModel, config: DecodingConfig, wording: GenerationTrace, request: GenerationRequest
) -> Completion | None:
    """The recorded tokens written again by the draft from the last that the target settled, by one of its engines: the
    general one and the one for drafting ahead, whose logits may differ in the last bits. What the second writes where
    neither writes them, None where they do not hold to the form.
    """
    of, answer = opened, None
    settled = wording.tokens[: wording.num_settled]
    for network in (of.network, of.draft_network):
        author = of.generator(network, config)
        try:
            answer = author.continue_from(wording.prompt, request, settled)
        except IntegrityError:
            return None
        if isinstance(answer, Completion) and answer.tokens == wording.tokens:
            return answer
    return answer if isinstance(answer, Completion) else None


def _view_from_tokens(writing: Completion, opened: ReplayModel, view: NewsView) -> NewsView:
    """The view as the tokens tell it, with what only the question knows taken from the record."""
    said = _with_understanding(parse_answer(writing.fields, opened.trust), view)
    return replace(said, meant=opened.meaning.meanings(said) if opened.meaning is not None else ())


def _with_understanding(said: ParsedAnswer, view: NewsView) -> NewsView:
    return replace(
        _without_wording(view),
        direction=said.direction,
        size_sigmas=said.size_sigmas if said.direction else 0.0,
        volatility_multiplier=said.volatility_multiplier,
        confidence=said.confidence,
        cause=said.cause,
        consistency=said.consistency,
        words=said.words,
    )


def _without_wording(view: NewsView) -> NewsView:
    return replace(view, wording=None)


def _decode_again(author: LocalGenerator, wording: GenerationTrace, request: GenerationRequest) -> Completion:
    answer = author.regenerate(wording.prompt, request)
    if isinstance(answer, RequestRefused):
        raise IntegrityError(f"the recorded reading cannot be written again: {answer.reason}")
    return answer

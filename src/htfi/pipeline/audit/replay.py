"""Generates a recorded reading again: the same tokens from the same seed and target, for `htfi ledger replay`."""

from collections.abc import Callable, Iterable, Sequence
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
from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused, RuleTrace
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.narrative.answer import ConfidenceCalibration, ParsedAnswer, parse_answer, view_grammar
from htfi.narrative.deep_reader import answer_seeds, combine_answers, combine_meanings
from htfi.narrative.merging import unmerged
from htfi.narrative.ports import NoiseKey
from htfi.narrative.view_calibration import ViewCalibration
from htfi.pipeline.audit.keys import NOISE_KEY
from htfi.pipeline.audit.token_text import TokenText, first_difference
from htfi.pipeline.record.entry import decode_entry, has_known_version, has_reading
from htfi.pipeline.record.unread import UnreadEntries


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

    def plain_generator(self, config: DecodingConfig) -> LocalGenerator: ...

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

    trace: GenerationTrace
    completion: Completion  # the answer as it was written again
    vocabulary: Vocabulary
    problems: list[str]


def newest_reading(entries: Iterable[bytes], unread: UnreadEntries) -> Decision:
    """The last decision for which a model of ours read; entries that cannot be read are counted. Raises: InvalidInput
    where there is none.
    """
    newest: bytes | None = None
    for place, entry in enumerate(entries):
        if is_tombstone(entry) or not has_known_version(entry):
            unread.add(place, entry)
        elif has_reading(entry):
            newest = entry
    if newest is None:
        none = "no decision here has a reading by a local model: there is nothing to replay"
        raise InvalidInput("; ".join((none, *unread.sentences())))
    return decode_entry(newest)


def reading_of(decision: Decision, entries: Iterable[bytes]) -> Decision:
    """The decision for which this one's view was read: itself, or an earlier one of the same series.

    A view that the target read late is that of an amendment. Raises: InvalidInput where no model read for it.
    """
    view = decision.view
    if view is None:
        raise InvalidInput(f"{decision.id}: no model read news for it: there is nothing to replay")
    if view.trace is not None:
        return decision
    read = unmerged(view)
    unread = UnreadEntries()
    if read is not None:
        for _, found in unread.decisions(entries):
            if found.series != decision.series or found.as_of_ns != read.as_of_ns:
                continue
            kept = unmerged(found.view) if found.view is not None else None
            if kept is None or kept.trace is None:
                continue
            if "readings" not in decision.models:  # a merged view did not record whether it is provisional
                kept = replace(kept, provisional=read.provisional)
            if _without_trace(kept) == _without_trace(read):
                return found
    none = f"{decision.id}: its view ({view.reader or 'no reader'}) is not by a local model: there is nothing to replay"
    raise InvalidInput("; ".join((none, *unread.sentences())))


def noise_seeds(decision: Decision, trace: GenerationTrace, key: NoiseKey | None) -> list[int]:
    """The seeds of the noise of a decision's reading, one for each answer. `key` is the marking key at hand.

    At temperature 0 noise chooses nothing, and no key is needed. Raises: InvalidInput where another key is needed.
    """
    named = decision.models.get(NOISE_KEY, "")
    if not named or trace.temperature == 0.0:
        return answer_seeds(trace)
    if key is None or key.id != named:
        at_hand = "" if key is None else f", and the key there is {key.id}"
        raise InvalidInput(
            f"{decision.id}: its noise follows from marking key {named}{at_hand}: only who holds that key, as mark.key "
            "in the run's folder, can write the reading again"
        )
    return answer_seeds(trace, key)


def replay_reading(
    decision: Decision,
    config: DecodingConfig,
    open_model: Callable[[str, ModelRole], ReplayModel],
    key: NoiseKey | None = None,
) -> ReplayedReading:
    """Generate the view of a decision again from its trace.

    `open_model` opens the model of a version in a role. Where the target ran does not matter: its tokens are the same.
    `key` is the run's marking key, if it has one.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    view = (
        unmerged(decision.view) if decision.view is not None else None
    )  # what was read, before it was merged
    if view is None or view.trace is None:
        raise InvalidInput(f"{decision.id} holds no generation trace")
    trace = view.trace
    seeds = noise_seeds(decision, trace, key)
    opened = open_model(trace.target, ModelRole.TARGET)
    vocabulary = opened.vocabulary
    request = GenerationRequest(
        prompt=(),
        form=view_grammar(vocabulary.dialect, trace.num_items),
        seed=seeds[0],
        temperature=trace.temperature,
        kind="view",
    )
    if trace.paths:
        return _replay_paths(opened, config, view, trace, request, seeds)
    spell = TokenText.of(vocabulary)
    if isinstance(trace.rule, UnsetType):
        plain = _decode_again(opened.plain_generator(config), trace, request)
        problems = _check_target_tokens(plain, trace, spell)
        problems += _check_recorded_drafts(opened, config, trace, request, plain)
    else:  # the answer depends on the drafts: it is reproduced along them alone
        drafter = open_model(trace.draft, ModelRole.DRAFT) if trace.rule.widths else None
        plain, problems = _replay_rule(opened, drafter, config, trace, trace.rule, request)
        if difference := first_difference(trace.tokens, plain.tokens, spell):
            problems.append(f"along the recorded drafts the target generates different tokens: {difference}")
    writing, finisher = plain, opened
    if trace.num_verified >= 0:
        finisher = open_model(trace.draft, ModelRole.DRAFT)
        writing = _finish_with_draft(finisher, config, trace, request) or plain
        if difference := first_difference(trace.tokens, writing.tokens, spell):
            problems.append(
                f"the draft, continuing from the target's tokens, generates different tokens: {difference}"
            )
    if (view.provisional and not view.prepared) != (trace.num_verified >= 0):
        problems.append("its provisional mark does not follow from which model generated it")
    if not problems and _view_from_tokens(writing, finisher, view) != _without_trace(view):
        problems.append("the view does not follow from the tokens")
    return ReplayedReading(trace, writing, vocabulary, problems)


def _replay_paths(
    opened: ReplayModel,
    config: DecodingConfig,
    view: NewsView,
    trace: GenerationTrace,
    request: GenerationRequest,
    seeds: Sequence[int],
) -> ReplayedReading:
    """A reading in depth: every answer again from its own seed, and what they come to together."""
    generator = opened.plain_generator(config)
    written = [_decode_again(generator, trace, replace(request, seed=seed)) for seed in seeds]
    vocabulary = opened.vocabulary
    spell = TokenText.of(vocabulary)
    problems = [
        f"the target generates different tokens in answer {path}: {differing}"
        for path, (answer, tokens) in enumerate(zip(written, trace.paths, strict=True))
        if (differing := first_difference(tokens, answer.tokens, spell))
    ]
    parsed, nearest = combine_answers([parse_answer(answer.fields, opened.trust) for answer in written])
    if written[nearest].tokens != trace.tokens:
        problems.append("the recorded answer is not the one that its answers combine to")
    if view.provisional or trace.num_verified >= 0:
        problems.append("its provisional mark does not follow from which model generated it")
    each = [_with_understanding(parse_answer(answer.fields, opened.trust), view) for answer in written]
    meant = combine_meanings(each, opened.meaning) if opened.meaning is not None else ()
    if not problems and replace(
        _with_understanding(parsed, view), calibrated_effects=meant
    ) != _without_trace(view):
        problems.append("the view does not follow from the tokens")
    return ReplayedReading(trace, written[nearest], vocabulary, problems)


def _check_target_tokens(plain: Completion, trace: GenerationTrace, spell: Callable[[int], str]) -> list[str]:
    """Whether the target, decoding alone, generates the tokens that are recorded as its own."""
    if trace.num_verified < 0:
        difference = first_difference(trace.tokens, plain.tokens, spell)
        return [f"the target, decoding alone, generates different tokens: {difference}"] if difference else []
    num = trace.num_verified
    if num >= len(trace.tokens):
        return [f"{num} of {len(trace.tokens)} tokens are recorded as the target's, so none is the draft's"]
    difference = first_difference(trace.tokens[:num], plain.tokens[:num], spell)
    words = (
        f"the target, decoding alone, does not begin with the {num} tokens recorded as its own: {difference}"
    )
    return [words] if difference else []


def _check_recorded_drafts(
    opened: ReplayModel,
    config: DecodingConfig,
    trace: GenerationTrace,
    request: GenerationRequest,
    plain: Completion,
) -> list[str]:
    """What the target finds otherwise on the recorded drafts. An edge may not have seen the last rounds elsewhere."""
    try:
        drafted = _decode_again(
            opened.generator(opened.network, config, RecordedStrategy(trace.rounds)), trace, request
        )
    except IntegrityError as error:
        return [f"the recorded drafts cannot be verified again: {error}"]
    problems: list[str] = []
    if drafted.tokens != plain.tokens:
        problems.append("the target, verifying the recorded drafts, generates different tokens")
    seen = drafted.rounds[: len(trace.rounds)] if trace.place else drafted.rounds
    if seen != trace.rounds:
        problems.append("the target does not accept the recorded drafts as recorded")
    return problems


def _replay_rule(
    opened: ReplayModel,
    drafter: ReplayModel | None,
    config: DecodingConfig,
    trace: GenerationTrace,
    rule_trace: RuleTrace,
    request: GenerationRequest,
) -> tuple[Completion, list[str]]:
    """The answer along the recorded drafts under the recorded rule, and what differs.

    The draft model samples its drafts again, by one of its engines, whose logits may differ in the last bits.
    Raises: IntegrityError for a draft that is not the draft model's, or a rule that this program does not have.
    """
    rule = RejectionRule.from_trace(rule_trace)
    problems = (
        []
        if rule_trace.name == config.rule
        else [f"the settings name the rule '{config.rule}', not '{rule_trace.name}'"]
    )
    engines = (drafter.draft_network, drafter.network) if drafter is not None else (None,)
    found: Completion | None = None
    failed: IntegrityError | None = None
    for network in engines:
        sampled = (
            SampledStrategy(KVSessions(network, config), rule_trace.widths) if network is not None else None
        )
        try:
            generator = opened.generator(
                opened.network, config, RecordedStrategy(trace.rounds, sampled), rule
            )
            found = _decode_again(generator, trace, request)
        except IntegrityError as error:
            failed = failed or error
            continue
        if found.tokens == trace.tokens and found.rounds == trace.rounds:
            return found, problems
    if found is None:
        raise failed or IntegrityError("the recorded drafts cannot be verified again")
    for number, (recorded, again) in enumerate(zip(trace.rounds, found.rounds, strict=False), 1):
        if recorded != again:
            problems.append(f"in round {number} the target accepts tokens other than the recorded ones")
            break
    if len(trace.rounds) != len(found.rounds):
        problems.append(f"{len(trace.rounds)} rounds are recorded, but {len(found.rounds)} are needed")
    return found, problems


def _finish_with_draft(
    opened: ReplayModel, config: DecodingConfig, trace: GenerationTrace, request: GenerationRequest
) -> Completion | None:
    """The recorded tokens written again by the draft from the last that the target settled, by one of its engines: the
    general one and the one for drafting ahead, whose logits may differ in the last bits. What the second writes where
    neither writes them, None where they do not hold to the form.
    """
    of, answer = opened, None
    accepted = trace.tokens[: trace.num_verified]
    for network in (of.network, of.draft_network):
        generator = of.generator(network, config)
        try:
            answer = generator.continue_from(trace.prompt, request, accepted)
        except IntegrityError:
            return None
        if isinstance(answer, Completion) and answer.tokens == trace.tokens:
            return answer
    return answer if isinstance(answer, Completion) else None


def _view_from_tokens(writing: Completion, opened: ReplayModel, view: NewsView) -> NewsView:
    """The view that the tokens state, with what only the question knows taken from the record."""
    parsed = _with_understanding(parse_answer(writing.fields, opened.trust), view)
    return replace(
        parsed, calibrated_effects=opened.meaning.meanings(parsed) if opened.meaning is not None else ()
    )


def _with_understanding(parsed: ParsedAnswer, view: NewsView) -> NewsView:
    return replace(
        _without_trace(view),
        direction=parsed.direction,
        size_sigmas=parsed.size_sigmas if parsed.direction else 0.0,
        volatility_multiplier=parsed.volatility_multiplier,
        confidence=parsed.confidence,
        cause=parsed.cause,
        consistency=parsed.consistency,
        words=parsed.words,
    )


def _without_trace(view: NewsView) -> NewsView:
    return replace(view, trace=None)


def _decode_again(
    generator: LocalGenerator, trace: GenerationTrace, request: GenerationRequest
) -> Completion:
    answer = generator.regenerate(trace.prompt, request)
    if isinstance(answer, RequestRefused):
        raise IntegrityError(f"the recorded reading cannot be generated again: {answer.reason}")
    return answer

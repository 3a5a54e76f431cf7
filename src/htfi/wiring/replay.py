"""Writes a recorded reading again: the same tokens from the same seed and target. `htfi ledger replay` asks for it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from msgspec import UnsetType
from msgspec.structs import replace

from htfi import models
from htfi.adapters.stores.snapshot import read_whole
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.rules.rejection import RejectionRule
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.recorded import RecordedStrategy
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision, GenerationTrace, NewsView, encode_decision, try_decode_decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused, RuleTrace
from htfi.narrative.answer import ParsedAnswer, parse_answer, view_grammar
from htfi.narrative.deep_reader import combine_answers, combine_meanings, path_seed
from htfi.narrative.merging import unmerged
from htfi.pipeline.audit.readings import ReadingAuditor, first_difference
from htfi.pipeline.audit.recompute import AmendmentAuditor
from htfi.wiring.draft_rounds import TokenText
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.models.readers import ModelsConfig, in_full_precision
from htfi.wiring.recorded_models import ModelsByVersion, reading_terms
from htfi.wiring.settings import SETTINGS_FILE, Settings, decode_settings


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
    decision: Decision, run: Path, target: Path | None, draft: Path | None = None
) -> ReplayedReading:
    """Write the view of a decision again, which holds its wording.

    `target` is the folder of the model that wrote it, one of the shipped ones where it is not given; `draft` that of
    the model which finished a provisional one. Where the target wrote does not matter: its tokens are the same.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    view = (
        unmerged(decision.view) if decision.view is not None else None
    )  # what was read, before it was merged
    if view is None or view.wording is None:
        raise InvalidInput(f"{decision.id} holds no wording")
    wording, settings = view.wording, run_settings(run, decision)
    opened = _find_writer(wording.target, target, settings.models, "--target")
    vocabulary = Vocabulary(opened.tokenizer)
    request = GenerationRequest(
        prompt=(),
        form=view_grammar(vocabulary.dialect, wording.num_items),
        seed=wording.seed,
        temperature=wording.temperature,
        kind="view",
    )
    if wording.paths:
        return _replay_paths(opened, settings, view, wording, request, vocabulary)
    spell = TokenText.of(vocabulary)
    if isinstance(wording.rule, UnsetType):
        plain = _decode_again(opened.author(settings.decoding), wording, request)
        problems = _check_target_tokens(plain, wording, spell)
        problems += _check_recorded_drafts(opened, settings, wording, request, plain)
    else:  # the answer depends on the drafts: it is reproduced along them alone
        drafter = (
            _find_writer(wording.draft, draft, settings.models, "--draft") if wording.rule.widths else None
        )
        plain, problems = _replay_rule(opened, drafter, settings, wording, wording.rule, request)
        if told := first_difference(wording.tokens, plain.tokens, spell):
            problems.append(f"along the recorded drafts the target writes other tokens: {told}")
    writing, finisher = plain, opened
    if wording.num_settled >= 0:
        finisher = _find_writer(wording.draft, draft, settings.models, "--draft")
        writing = _finish_with_draft(finisher, settings, wording, request) or plain
        if told := first_difference(wording.tokens, writing.tokens, spell):
            problems.append(f"the draft, going on from what the target settled, writes other tokens: {told}")
    if (view.provisional and not view.prepared) != (wording.num_settled >= 0):
        problems.append("whether the view is provisional does not follow from who wrote it")
    if not problems and _view_from_tokens(writing, finisher, view) != _without_wording(view):
        problems.append("the view does not follow from the tokens")
    return ReplayedReading(wording, writing, vocabulary, problems)


def _replay_paths(
    opened: LoadableModel,
    settings: Settings,
    view: NewsView,
    wording: GenerationTrace,
    request: GenerationRequest,
    vocabulary: Vocabulary,
) -> ReplayedReading:
    """A reading in depth: every answer again from its own seed, and what they come to together."""
    author = opened.author(settings.decoding)
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


def unsupported_views(
    entries: Iterable[bytes], asked: Sequence[Decision], settings: Settings, named: Sequence[Path] = ()
) -> tuple[list[str], list[str]]:
    """What of these decisions' views does not follow from their news and from the entries before them, and what could
    not be held against them. `entries` are the ledger's from the first on; `named` folders of models.
    """
    told: list[bytes] = []
    amendments = AmendmentAuditor(told.__getitem__)
    readings = ReadingAuditor(reading_terms(settings), ModelsByVersion(settings.models, named).model)
    found: list[str] = []
    wanted = {encode_decision(decision): decision.id for decision in asked}
    for entry in entries:
        told.append(entry)
        decision = try_decode_decision(entry)
        if decision is None:
            continue
        changed = amendments.problems(decision)
        if entry in wanted:
            found += [f"{wanted[entry]}: {problem}" for problem in readings.problems(decision) + changed]
        else:
            readings.history.add(decision)
    return found, list(readings.num_unchecked)


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
    opened: LoadableModel,
    settings: Settings,
    wording: GenerationTrace,
    request: GenerationRequest,
    plain: Completion,
) -> list[str]:
    """What the target finds otherwise on the recorded drafts. An edge may not have seen the last rounds elsewhere."""
    try:
        drafted = _decode_again(
            _replaying_author(opened, settings.decoding, RecordedStrategy(wording.rounds)), wording, request
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
    opened: LoadableModel,
    drafter: LoadableModel | None,
    settings: Settings,
    wording: GenerationTrace,
    trace: RuleTrace,
    request: GenerationRequest,
) -> tuple[Completion, list[str]]:
    """The answer along the recorded drafts under the recorded rule, and what differs.

    The draft model samples its drafts again, by one of its engines, whose logits may differ in the last bits.
    Raises: IntegrityError for a draft that is not the draft model's, or a rule that this program does not have.
    """
    rule, config = RejectionRule.from_trace(trace), settings.decoding
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
            generator = _replaying_author(opened, config, RecordedStrategy(wording.rounds, sampled), rule)
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
    opened: LoadableModel, settings: Settings, wording: GenerationTrace, request: GenerationRequest
) -> Completion | None:
    """The recorded tokens written again by the draft from the last that the target settled, by one of its engines: the
    general one and the one for drafting ahead, whose logits may differ in the last bits. What the second writes where
    neither writes them, None where they do not hold to the form.
    """
    of, answer = opened, None
    settled = wording.tokens[: wording.num_settled]
    for network in (of.network, of.draft_network):
        author = LocalGenerator(
            network, of.tokenizer, of.name, settings.decoding, of.tokenizer.opening, of.folder.digest
        )
        try:
            answer = author.continue_from(wording.prompt, request, settled)
        except IntegrityError:
            return None
        if isinstance(answer, Completion) and answer.tokens == wording.tokens:
            return answer
    return answer if isinstance(answer, Completion) else None


def _view_from_tokens(writing: Completion, opened: LoadableModel, view: NewsView) -> NewsView:
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


def _replaying_author(
    opened: LoadableModel,
    config: DecodingConfig,
    strategy: RecordedStrategy,
    rule: RejectionRule | None = None,
) -> LocalGenerator:
    of = opened
    return LocalGenerator(
        of.network, of.tokenizer, of.name, config, of.tokenizer.opening, of.folder.digest, strategy, rule=rule
    )


def _find_writer(version: str, named: Path | None, config: ModelsConfig, option: str) -> LoadableModel:
    """Raises: InvalidInput where the folder holds another model than wrote."""
    candidates = [named] if named is not None else [models.TARGET, models.DRAFT]
    found = [open_model(path, config.precision, config.engine) for path in candidates]
    for opened in (*found, *(in_full_precision(one) for one in found)):
        if opened.version == version:
            return opened
    holds = " and ".join(f"{opened.folder.path} holds {opened.version}" for opened in found)
    raise InvalidInput(
        f"{version} wrote this; {holds}: name the folder of the model that wrote with {option}"
    )


def run_settings(run: Path, decision: Decision) -> Settings:
    """The settings of a run, which a decision was made under. Raises: IntegrityError, InvalidInput."""
    file = run / SETTINGS_FILE
    data = read_whole(file)
    if data is None:
        raise IntegrityError(f"{file} is missing: it tells the precision that the model ran in")
    if sha256(data).hexdigest() != decision.settings_digest:
        raise IntegrityError(f"{file} is not what {decision.id} was made under: give the run's command again")
    return decode_settings(data, to_verify=True)

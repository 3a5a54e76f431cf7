"""Distils a draft from what its target said, judges it on what was held back, and promotes it if it is better.

`htfi models distil` calls it. Evaluation data is never trained on: a fixed fifth of the news in the buffer is kept
back by hash, and simulated stories of seeds of their own show whether something was forgotten.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from htfi.adapters.stores.replay_buffer import read_replay_buffer
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.promotion import promote
from htfi.decoding.replay_buffer import ReplayRecord
from htfi.domain.errors import DependencyUnavailable, InvalidInput, require_extra
from htfi.domain.generation import GenerationRequest
from htfi.narrative.answer import UNCALIBRATED
from htfi.wiring.models.checks import read_card
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.loading import LoadableModel, open_model, write_trust
from htfi.wiring.models.readers import open_model_pair
from htfi_train.acceptance_comparison import (
    PATH_FIELD,
    AcceptanceChange,
    AcceptanceCounts,
    compare_acceptance,
    count_matches,
)
from htfi_train.corpus import open_story_facts
from htfi_train.examples import ExchangeSplit, examples_of, simulated_examples, split_exchanges
from htfi_train.simulation.draft_questions import JUDGING_SEED, answer_requests, simulated_requests
from htfi_train.simulation.reader_calibration import answer_stories, estimate_meaning, estimate_trust
from htfi_train.torch.config import DistilConfig
from htfi_train.torch.examples import AdmittedTokenSets

ReportLine = Callable[[str], None]

NUM_SIMULATED_QUESTIONS = 300  # simulated questions that a draft is judged on
_MIN_HELD_BACK = 20  # news
_NUM_SIMULATED_PATHS, _SIMULATED_HORIZON = 2, 24
_NUM_TRUST_STORIES = 2_000


@dataclass(frozen=True, slots=True)
class AcceptanceRow:
    """One line of the table: whose questions, which field ('' for all), and the change of acceptance."""

    questions: str
    field: str
    change: AcceptanceChange


@dataclass(frozen=True, slots=True)
class DistillationResult:
    """What came of it. `folder` is where the promoted draft lies, None where the old one stays for `reason`."""

    folder: Path | None
    reason: str
    finished: bool
    rows: Sequence[AcceptanceRow]


def parse_distil_config(**options: object) -> DistilConfig:
    """What a person said of a run, the rest as it is by default. Raises: InvalidInput."""
    try:
        return msgspec.convert({k: v for k, v in options.items() if v is not None}, DistilConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"distilling: {error}") from error


def distil_draft(
    config: DistilConfig,
    buffer: Path,
    models: ModelsConfig,
    out: Path,
    report: ReportLine,
    num_rehearsed: int = 0,
) -> DistillationResult:
    """Teach the pair's draft what is in `buffer`; promote it in `out` if it is better on what was held back.

    `num_rehearsed` simulated questions judge beside them (0: the usual number).
    Raises: MissingExtra, InvalidInput, IntegrityError, DependencyUnavailable.
    """
    require_extra("distilling", "train", "torch")
    target, draft = open_model_pair(models)
    exchanges, num_unread = read_replay_buffer(buffer)
    old = _drafting_generator(draft)
    split = split_exchanges(exchanges, target, old)
    _report_split(split, num_unread, target, buffer, report)
    work = _make_work_folder(out)
    try:
        writer = target.plain_generator(DecodingConfig())
        asked = simulated_requests(JUDGING_SEED, writer.dialect, facts=open_story_facts(writer.dialect))
        judged = {
            "held back": split.held_back,
            "simulated": _simulated_exchanges(
                writer, islice(asked, num_rehearsed or NUM_SIMULATED_QUESTIONS), draft.tokenizer.digest
            ),
        }
        report(f"measuring {draft.name} on {' and '.join(f'{len(v)} {k}' for k, v in judged.items())}")
        before = {name: count_matches(old, exchanges) for name, exchanges in judged.items()}
        if not _train_draft(config, target, draft, writer, split.training, work, report):
            return DistillationResult(None, "stopped: nothing was promoted", False, ())
        learnt = open_model(work, models.precision, models.engine)
        report("measuring the new draft")
        new = _drafting_generator(learnt)
        after = {name: count_matches(new, exchanges) for name, exchanges in judged.items()}
        rows = [row for name in judged for row in _acceptance_rows(name, before[name], after[name])]
        reason = rejection_reason(rows)
        if reason:
            return DistillationResult(None, reason, True, rows)
        _measure_trust(draft, work, report)
        overall = rows[0].change
        folder = promote(out, work, draft.folder.digest, (overall.before, overall.after))
        return DistillationResult(folder, "", True, rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def rejection_reason(rows: Sequence[AcceptanceRow]) -> str:
    """Why the draft is not promoted; '' where it is: it rose on what was held back, and nothing fell.

    Both beyond one standard error of the paired difference, answers and paths apart.
    """
    overall = rows[0].change
    if not overall.is_rise:
        return (
            f"acceptance on held-back questions went from {overall.before:.4f} to {overall.after:.4f}: "
            f"no more than its error of {overall.error:.4f}"
        )
    for row in rows:
        if row.field in ("answers", "paths") and row.change.is_fall:
            return (
                f"acceptance of {row.field} fell on {row.questions} questions, from {row.change.before:.4f} to "
                f"{row.change.after:.4f} (error {row.change.error:.4f})"
            )
    return ""


def _drafting_generator(draft: LoadableModel) -> LocalGenerator:
    """The draft on the engine that will guess ahead with it."""
    opening, digest = draft.tokenizer.opening, draft.folder.digest
    return LocalGenerator(draft.draft_network, draft.tokenizer, draft.name, DecodingConfig(), opening, digest)


def _report_split(
    split: ExchangeSplit, num_unread: int, target: LoadableModel, buffer: Path, report: ReportLine
) -> None:
    counts = [f"{len(split.training)} exchanges to learn from", f"{len(split.held_back)} held back"]
    counts += [f"{split.num_other_models} of other targets"] * (split.num_other_models > 0)
    num_unfit = split.num_unusable + num_unread
    counts += [f"{num_unfit} unreadable"] * (num_unfit > 0)
    report(f"{buffer}: {', '.join(counts)}")
    if split.num_news < _MIN_HELD_BACK or not split.training:
        raise InvalidInput(
            f"{buffer} holds too little of {target.name}@{target.folder.digest[:12]} to judge a draft by: news held "
            f"back {split.num_news} of {_MIN_HELD_BACK}; let it answer some {5 * _MIN_HELD_BACK} different ones"
        )


def _make_work_folder(out: Path) -> Path:
    try:
        work = out / f".distilling-{os.getpid()}"  # not a temporary file's rights: a service reads it later
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        return work
    except OSError as error:
        raise DependencyUnavailable(
            f"{out} cannot be written: {error.strerror}; name another folder"
        ) from error


def _simulated_exchanges(
    writer: LocalGenerator, requests: Iterator[GenerationRequest], tokenizer: str
) -> list[ReplayRecord]:
    num_paths = _NUM_SIMULATED_PATHS if writer.dialect.is_mini else 0
    return list(answer_requests(writer, requests, tokenizer, num_paths, _SIMULATED_HORIZON))


def _train_draft(
    config: DistilConfig,
    target: LoadableModel,
    draft: LoadableModel,
    writer: LocalGenerator,
    exchanges: Sequence[ReplayRecord],
    work: Path,
    report: ReportLine,
) -> bool:
    from htfi_train.torch.distillation import DistillationData, distil

    sets = AdmittedTokenSets(target.folder.architecture.vocab_size)
    recorded_examples = [example for exchange in exchanges for example in examples_of(writer, exchange, sets)]
    examples = DistillationData(
        recorded_examples, simulated_examples(writer, target, config.seed, sets), sets
    )
    known = read_card(draft.folder.path)
    facts = {
        "model": known.get("model", draft.folder.path.name),
        "data": f"{known.get('data', 'unknown')}; then answers of its target",
        "distilled_from": target.folder.digest,
        "began_as": draft.folder.digest,
        "num_exchanges": len(exchanges),
    }
    before = known.get("tokens")
    num_tokens = before if isinstance(before, int) else 0
    return distil(config, target.folder, draft.folder, examples, work, facts, report, num_tokens).finished


def _measure_trust(draft: LoadableModel, work: Path, report: ReportLine) -> None:
    """A draft also reads, where time is short: the calibration of its views is measured again."""
    if draft.trust == UNCALIBRATED:
        return
    report(f"calibrating its views on {_NUM_TRUST_STORIES:,} simulated stories")
    generator = open_model(work, draft.precision, draft.engine).plain_generator(DecodingConfig())
    facts = open_story_facts(generator.dialect)
    answered = answer_stories(generator, _NUM_TRUST_STORIES, lambda _done, _num: None, facts)
    write_trust(
        work, estimate_trust(answered), estimate_meaning(answered) if draft.meaning is not None else None
    )


def _acceptance_rows(name: str, before: AcceptanceCounts, after: AcceptanceCounts) -> list[AcceptanceRow]:
    """All together first, then answers and paths, then field by field."""
    answers = [field for field in before.fields if field != PATH_FIELD]
    kinds: list[tuple[str, list[str] | None]] = [("", None), ("answers", answers), ("paths", [PATH_FIELD])]
    kinds += [(field, [field]) for field in answers]
    found = [(field, compare_acceptance(before, after, fields)) for field, fields in kinds]
    return [AcceptanceRow(name, field, changed) for field, changed in found if changed is not None]

"""Distils a draft from what its target said, judges it on what was held back, and promotes it if it is better.

`htfi models distil` calls it. Nothing that judges is learnt from: a fixed fifth of the news in the buffer is kept
back by hash, and simulated stories of seeds of their own tell whether something was forgotten.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from htfi.adapters.stores.recent_answers import read_recent
from htfi.adapters.torch.config import DistilConfig
from htfi.adapters.torch.extra import require_torch
from htfi.adapters.torch.lessons import AdmittedSets
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.replay_buffer import Exchange
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.writing import Dialect, Request
from htfi.narrative.answer import AS_STATED
from htfi.wiring.acceptance import PATH_FIELD, Acceptance, Change, change, measure
from htfi.wiring.lessons import Split, lessons_of, rehearsal, split_exchanges
from htfi.wiring.model_calibration import answers, meaning_of, trust_of
from htfi.wiring.model_check import card
from htfi.wiring.model_trust import write_trust
from htfi.wiring.models import ModelsConfig, open_pair
from htfi.wiring.open_folder import OpenFolder, open_folder
from htfi.wiring.promotion import promote
from htfi.wiring.rehearsal import JUDGING_SEED, answered, simulated_requests

Report = Callable[[str], None]

NUM_REHEARSED = 300  # simulated questions that a draft is judged on
_LEAST_HELD_BACK = 20  # news
_REHEARSED_PATHS, _REHEARSED_HORIZON = 2, 24
_NUM_TRUST_STORIES = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: whose questions, which field ('' for all), and the change of acceptance."""

    questions: str
    field: str
    change: Change


@dataclass(frozen=True, slots=True)
class Distilled:
    """What came of it. `folder` is where the promoted draft lies, None where the old one stays for `reason`."""

    folder: Path | None
    reason: str
    finished: bool
    rows: Sequence[Row]


def distil_config(**said: object) -> DistilConfig:
    """What a person said of a run, the rest as it is by default. Raises: InvalidInput."""
    try:
        return msgspec.convert({k: v for k, v in said.items() if v is not None}, DistilConfig)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"distilling: {error}") from error


def distil_draft(
    config: DistilConfig,
    buffer: Path,
    models: ModelsConfig,
    out: Path,
    report: Report,
    num_rehearsed: int = 0,
) -> Distilled:
    """Teach the pair's draft what is in `buffer`; promote it in `out` if it is better on what was held back.

    `num_rehearsed` simulated questions judge beside them (0: the usual number).
    Raises: MissingExtra, InvalidInput, IntegrityError, DependencyUnavailable.
    """
    require_torch("distilling")
    target, draft = open_pair(models)
    exchanges, num_unread = read_recent(buffer)
    old = _guessing(draft)
    split = split_exchanges(exchanges, target, old)
    _tell(split, num_unread, target, buffer, report)
    work = _workplace(out)
    try:
        writer = target.author(DecodingConfig())
        asked = simulated_requests(JUDGING_SEED, writer.dialect)
        judged = {
            "held back": split.held_back,
            "simulated": _rehearsed(
                writer, islice(asked, num_rehearsed or NUM_REHEARSED), draft.tokenizer.digest
            ),
        }
        report(f"measuring {draft.name} on {' and '.join(f'{len(v)} {k}' for k, v in judged.items())}")
        before = {name: measure(old, exchanges) for name, exchanges in judged.items()}
        if not _teach(config, target, draft, writer, split.lessons, work, report):
            return Distilled(None, "stopped: nothing was promoted", False, ())
        learnt = open_folder(work, models.precision, models.engine)
        report("measuring what was learnt")
        new = _guessing(learnt)
        after = {name: measure(new, exchanges) for name, exchanges in judged.items()}
        rows = [row for name in judged for row in _rows(name, before[name], after[name])]
        reason = refusal(rows)
        if reason:
            return Distilled(None, reason, True, rows)
        _keep_trust(draft, work, report)
        overall = rows[0].change
        folder = promote(out, work, draft.folder.digest, (overall.before, overall.after))
        return Distilled(folder, "", True, rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def refusal(rows: Sequence[Row]) -> str:
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


def _guessing(draft: OpenFolder) -> LocalAuthor:
    """The draft on the engine that will guess ahead with it."""
    opening, digest = draft.tokenizer.opening, draft.folder.digest
    return LocalAuthor(draft.drafting, draft.tokenizer, draft.name, DecodingConfig(), opening, digest)


def _tell(split: Split, num_unread: int, target: OpenFolder, buffer: Path, report: Report) -> None:
    told = [f"{len(split.lessons)} exchanges to learn from", f"{len(split.held_back)} held back"]
    told += [f"{split.num_others} of other targets"] * (split.num_others > 0)
    num_unfit = split.num_unfit + num_unread
    told += [f"{num_unfit} unreadable"] * (num_unfit > 0)
    report(f"{buffer}: {', '.join(told)}")
    if split.num_news < _LEAST_HELD_BACK or not split.lessons:
        raise InvalidInput(
            f"{buffer} holds too little of {target.name}@{target.folder.digest[:12]} to judge a draft by: news held "
            f"back {split.num_news} of {_LEAST_HELD_BACK}; let it answer some {5 * _LEAST_HELD_BACK} different ones"
        )


def _workplace(out: Path) -> Path:
    try:
        work = out / f".distilling-{os.getpid()}"  # not a temporary file's rights: a service reads it later
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        return work
    except OSError as error:
        raise DependencyUnavailable(
            f"{out} cannot be written: {error.strerror}; name another folder"
        ) from error


def _rehearsed(writer: LocalAuthor, requests: Iterator[Request], tokenizer: str) -> list[Exchange]:
    num_paths = _REHEARSED_PATHS if writer.dialect is Dialect.MINI else 0
    return list(answered(writer, requests, tokenizer, num_paths, _REHEARSED_HORIZON))


def _teach(
    config: DistilConfig,
    target: OpenFolder,
    draft: OpenFolder,
    writer: LocalAuthor,
    exchanges: Sequence[Exchange],
    work: Path,
    report: Report,
) -> bool:
    from htfi.adapters.torch.distilling import Lessons, distil

    sets = AdmittedSets(target.folder.architecture.vocab_size)
    said = [lesson for exchange in exchanges for lesson in lessons_of(writer, exchange, sets)]
    lessons = Lessons(said, rehearsal(writer, target, config.seed, sets), sets)
    known = card(draft.folder.path)
    facts = {
        "model": known.get("model", draft.folder.path.name),
        "data": f"{known.get('data', 'unknown')}; then what its target said",
        "distilled_from": target.folder.digest,
        "began_as": draft.folder.digest,
        "num_exchanges": len(exchanges),
    }
    before = known.get("tokens")
    num_tokens = before if isinstance(before, int) else 0
    return distil(config, target.folder, draft.folder, lessons, work, facts, report, num_tokens).finished


def _keep_trust(draft: OpenFolder, work: Path, report: Report) -> None:
    """A draft also reads, where time is short: what its words prove to be worth is measured anew."""
    if draft.trust == AS_STATED:
        return
    report(f"measuring what its words are worth on {_NUM_TRUST_STORIES:,} simulated stories")
    author = open_folder(work, draft.precision, draft.engine).author(DecodingConfig())
    answered = answers(author, _NUM_TRUST_STORIES, lambda _done, _num: None)
    write_trust(work, trust_of(answered), meaning_of(answered) if draft.meaning is not None else None)


def _rows(name: str, before: Acceptance, after: Acceptance) -> list[Row]:
    """All together first, then answers and paths, then field by field."""
    answers = [field for field in before.fields if field != PATH_FIELD]
    kinds: list[tuple[str, list[str] | None]] = [("", None), ("answers", answers), ("paths", [PATH_FIELD])]
    kinds += [(field, [field]) for field in answers]
    found = [(field, change(before, after, fields)) for field, fields in kinds]
    return [Row(name, field, changed) for field, changed in found if changed is not None]

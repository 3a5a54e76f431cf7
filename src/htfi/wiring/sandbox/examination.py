"""Tries a candidate against the champion: all trials of both in confined processes, figures, verdict, its record."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np

from htfi.adapters.keys.ed25519 import load_key
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.events import News
from htfi.domain.files import make_private, write_atomically
from htfi.domain.time import SystemClock
from htfi.governance.ledger.checkpoint import log_key
from htfi.governance.ledger.note import NoteSignature, SignedNote
from htfi.governance.sandbox.entries import SandboxVerdict, encode_entry
from htfi.governance.sandbox.results import Bounds, Enforcement, TrialEnding, TrialResult, TrialStopped
from htfi.governance.sandbox.trials import CandidateKind, SandboxTrial, TrialLink, TrialNews, trials_of
from htfi.governance.sandbox.verdict import failed_checks, max_answer_ms, permitted_chance
from htfi.pipeline.sandbox.figures import (
    SideAnswers,
    TrialFigures,
    compare_sides,
    failed_trial,
    farthest_moved,
    gain_is_real,
    known,
)
from htfi.pipeline.sandbox.messages import Answers, encode
from htfi.pipeline.sandbox.trial_events import TrialEvents, make_trial_events
from htfi.wiring.governance_log import GOVERNANCE_ORIGIN, open_governance_log
from htfi.wiring.ledger import SIGNING_KEY
from htfi.wiring.sandbox.candidates import Candidate, Tables
from htfi.wiring.sandbox.history import TrialHistory
from htfi.wiring.sandbox.promotion import PromotedModels, promoted_models, read_candidates
from htfi.wiring.sandbox.running import Contender, LinkSide, TrialSide, run_links, run_side
from htfi.wiring.settings import Settings, override

VERDICTS = "verdicts"
NOTE_ORIGIN = "htfi.sandbox"
_REPEATED_INSTANTS = 120  # of the first trial, which a candidate runs a second time
MAX_TIMES_AS_LONG, _SLACK_S = 6.0, 15.0  # that a candidate may take for a trial, beside the champion

Show = Callable[[str, float], None]
"""Called with the trial at work and the share of all that is done."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict, and what it was made from. `record` is its place in the governance log, None where none was given."""

    verdict: SandboxVerdict
    enforcement: Enforcement
    printed: str
    seconds: float
    record: int | None = None
    note: Path | None = None


@dataclass(slots=True)
class ChampionSides:
    """The champion's answers by trial, so that several candidates can be tried on the same trials."""

    sides: dict[tuple[str, SandboxTrial], TrialSide] = field(
        default_factory=dict[tuple[str, SandboxTrial], TrialSide]
    )
    links: dict[tuple[str, tuple[SandboxTrial, ...]], LinkSide] = field(
        default_factory=dict[tuple[str, tuple[SandboxTrial, ...]], LinkSide]
    )


def examine(
    candidate: Candidate,
    history: TrialHistory,
    *,
    champion: PromotedModels | None = None,
    governance: Path | None = None,
    seed: int | None = None,
    num_bars: int = 1_500,
    bounds: Bounds | None = None,
    show: Show = lambda _, __: None,
    champions: ChampionSides | None = None,
    with_bubblewrap: bool | None = None,
    now_ns: int | None = None,
    proposed_by: str = "",
) -> Examination:
    """Try a candidate and judge it; with `governance` the verdict is signed and recorded there.

    The champion is what the governance folder promotes, else what ships. Without `seed` it follows from the log's
    root and the candidate's digest, which nobody knows before; a second try is on other trials.
    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    began_s = time.monotonic()
    if champion is None:
        champion = promoted_models(governance) if governance is not None else PromotedModels()
    root = _log_root(governance) if governance is not None else b""
    if seed is None:
        seed = int.from_bytes(hashlib.sha256(root + candidate.digest.encode()).digest()[:6], "big")
    trials = trials_of(
        seed, reads_news=candidate.reads_news, is_numeric=candidate.is_numeric, num_bars=num_bars,
        over_link=candidate.over_link,
    )  # fmt: skip
    examiner = _Examiner(
        candidate,
        champion,
        history,
        bounds or _bounds(candidate),
        champions or ChampionSides(),
        with_bubblewrap,
    )
    figures = examiner.run(trials, show)
    # Others write the log while trials go on: the tries are counted when this one is recorded.
    log = open_governance_log(governance) if governance is not None else None
    try:
        past = read_candidates(log) if log is not None else None
        num_tries = 1 + (past.num_tries(candidate.digest, candidate.lineage) if past is not None else 0)
        sharpes = past.sharpes(candidate.digest, candidate.lineage) if past is not None else []
        sharpe, is_real = gain_is_real([one.differences for one in figures], sharpes, num_tries)
        results = tuple(one.result for one in figures)
        verdict = SandboxVerdict(
            at_ns=SystemClock().now_ns() if now_ns is None else now_ns,
            candidate=candidate.name, candidate_kind=candidate.kind, digest=candidate.digest, lineage=candidate.lineage,
            champion_digest=champion.digest, history_digest=history.digest,
            trials=tuple(trials), results=results, failed=tuple(failed_checks(results, num_tries)), num_tries=num_tries,
            permitted_chance=permitted_chance(num_tries), gain_sharpe=known(sharpe), gain_is_real=known(is_real),
            not_enforced=examiner.enforcement.not_enforced, untried=candidate.not_tried,
            proposed_by=proposed_by,
        )  # fmt: skip
        done = Examination(verdict, examiner.enforcement, examiner.printed, time.monotonic() - began_s)
        if log is None or governance is None:
            return done
        (receipt,) = log.append([encode_entry(verdict)])
        note = _write_verdict(governance, receipt.index, verdict)
        return replace(done, record=receipt.index, note=note)
    finally:
        if log is not None:
            log.close()


def _log_root(governance: Path) -> bytes:
    """The root of the governance log, made where there is none yet.

    Raises: InvalidInput, IntegrityError, LedgerUnavailable.
    """
    log = open_governance_log(governance)
    try:
        return log.root(log.size)
    finally:
        log.close()


class _Examiner:
    """Both sides of every trial of one candidate."""

    def __init__(
        self,
        candidate: Candidate,
        champion: PromotedModels,
        history: TrialHistory,
        bounds: Bounds,
        champions: ChampionSides,
        with_bubblewrap: bool | None,
    ) -> None:
        self._candidate, self._history, self._bounds = candidate, history, bounds
        self._champions, self._with_bubblewrap = champions, with_bubblewrap
        tables = champion.all_tables()
        folders = tuple(champion.folders.values())
        self._theirs = Contender(tables, "", folders, candidate.reads_news)
        merged = _merged(tables, candidate.tables)
        self._ours = Contender(merged, candidate.expert, (*folders, *candidate.folders), candidate.reads_news)
        self._shapes = tuple(_shape(one) for one in (merged, tables))
        self._key = hashlib.sha256(msgspec.json.encode(tables, order="sorted")).hexdigest()
        self.enforcement = Enforcement()
        self.printed = ""

    def run(self, trials: Sequence[SandboxTrial], show: Show) -> list[TrialFigures]:
        """The trials in order; the first that does not end as it should is the last."""
        found: list[TrialFigures] = []
        links = tuple(trial for trial in trials if trial.link is not TrialLink.NONE)
        for place, trial in enumerate(trials[: len(trials) - len(links)]):
            show(trial.name, place / len(trials))
            advance = partial(_show_part, show, trial.name, place, len(trials))
            one = self._one(trial, is_first=place == 0, advance=advance)
            found.append(one)
            if one.result.ending is not TrialEnding.FINISHED:
                show("", 1.0)
                return found
        if links:
            num = len(found)
            found += self._over_links(
                links, lambda at: show("edge and cloud", (num + at * len(links)) / len(trials))
            )
        show("", 1.0)
        return found

    def _over_links(
        self, trials: tuple[SandboxTrial, ...], advance: Callable[[float], None]
    ) -> list[TrialFigures]:
        """Readings over simulated links; the first trial that does not end as it should is the last."""
        theirs = self._champions.links.get((self._key, trials))
        if theirs is None:
            theirs = run_links(
                self._theirs,
                trials,
                self._bounds,
                lambda at: advance(0.5 * at),
                with_bubblewrap=self._with_bubblewrap,
            )
            self._champions.links[self._key, trials] = theirs
        if theirs.stopped is not None:
            raise _champion_failed(trials[len(theirs.figures)].name, theirs.stopped)
        ours = run_links(
            self._ours, trials, self._bounds, lambda at: advance(0.5 + 0.5 * at),
            with_bubblewrap=self._with_bubblewrap,
        )  # fmt: skip
        if ours.enforcement.enforced:
            self.enforcement = ours.enforcement
        found = [
            TrialFigures(
                TrialResult(trial=trial.name, ending=TrialEnding.FINISHED, link=link, champion_link=champion),
                np.empty(0),
            )
            for trial, link, champion in zip(trials, ours.figures, theirs.figures, strict=False)
        ]
        if ours.stopped is not None:
            found.append(failed_trial(trials[len(found)].name, ours.stopped))
        return found

    def _one(self, trial: SandboxTrial, *, is_first: bool, advance: Callable[[float], None]) -> TrialFigures:
        stream = make_trial_events(
            trial, self._history.bars, recorded_attacks(), self._history.peak_events_per_s
        )
        theirs = self._champion_side(trial, stream, lambda at: advance(0.5 * at))
        wall_s = min(self._bounds.wall_s, _SLACK_S + MAX_TIMES_AS_LONG * theirs.wall_s)
        ours = self._run(self._ours, stream, lambda at: advance(0.5 + 0.5 * at), wall_s)
        if is_first or ours.enforcement.enforced:
            self.enforcement = ours.enforcement
        self.printed = ours.printed or self.printed
        if ours.stopped is not None:
            return failed_trial(trial.name, ours.stopped)
        first, second = (
            _answers(side, shape) for side, shape in zip((ours, theirs), self._shapes, strict=True)
        )
        is_expert = self._candidate.kind is CandidateKind.EXPERT
        figures = compare_sides(trial.name, stream, first, second, has_own=is_expert)
        if _is_slower(figures.result):
            figures = self._timed_again(trial, stream, figures, wall_s)
        if trial.news is TrialNews.ATTACKS:
            figures = self._with_attacks(trial, figures, first, second)
        if is_first:
            part = replace(stream, instants=stream.instants[:_REPEATED_INSTANTS])
            again = self._run(self._ours, part, lambda _: None)
            # By their bytes: where an expert has no forecast yet it gives NaN, which equals nothing.
            before = encode(Answers([one for found in ours.answers[: len(part.instants)] for one in found]))
            after = encode(Answers([one for found in again.answers for one in found]))
            same = again.stopped is None and after == before
            figures = replace(figures, result=msgspec.structs.replace(figures.result, repeats=same))
        return figures

    def _timed_again(
        self, trial: SandboxTrial, stream: TrialEvents, figures: TrialFigures, wall_s: float
    ) -> TrialFigures:
        """Both sides once more, one right after the other: other work on the machine may have slowed the first time."""
        theirs = self._run(self._theirs, stream, lambda _: None)
        ours = self._run(self._ours, stream, lambda _: None, wall_s)
        if theirs.stopped is not None or ours.stopped is not None:
            return figures
        first, second = (
            _answers(side, shape) for side, shape in zip((ours, theirs), self._shapes, strict=True)
        )
        again = compare_sides(trial.name, stream, first, second, has_own=False).result
        if _is_slower(again):
            return figures
        result = msgspec.structs.replace(
            figures.result, answer_p95_ms=again.answer_p95_ms, champion_p95_ms=again.champion_p95_ms,
        )  # fmt: skip
        return replace(figures, result=result)

    def _with_attacks(
        self, trial: SandboxTrial, figures: TrialFigures, first: SideAnswers, second: SideAnswers
    ) -> TrialFigures:
        calm = msgspec.structs.replace(trial, news=TrialNews.TRUE)
        stream = make_trial_events(calm, self._history.bars, (), 0.0)
        ours = self._run(self._ours, stream, lambda _: None)
        if ours.stopped is not None:
            return failed_trial(trial.name, ours.stopped)
        theirs = self._champion_side(calm, stream, lambda _: None)
        moved = farthest_moved(first, _answers(ours, self._shapes[0]))
        champion_moved = farthest_moved(second, _answers(theirs, self._shapes[1]))
        result = msgspec.structs.replace(
            figures.result, moved=known(moved), champion_moved=known(champion_moved)
        )
        return replace(figures, result=result)

    def _champion_side(
        self, trial: SandboxTrial, stream: TrialEvents, advance: Callable[[float], None]
    ) -> TrialSide:
        key = (f"{self._key}/{self._candidate.reads_news}", trial)
        side = self._champions.sides.get(key)
        if side is None:
            side = self._champions.sides[key] = self._run(self._theirs, stream, advance)
        if side.stopped is not None:
            raise _champion_failed(trial.name, side.stopped)
        return side

    def _run(
        self,
        contender: Contender,
        stream: TrialEvents,
        advance: Callable[[float], None],
        wall_s: float | None = None,
    ) -> TrialSide:
        bounds = self._bounds if wall_s is None else msgspec.structs.replace(self._bounds, wall_s=wall_s)
        return run_side(contender, stream, bounds, advance, with_bubblewrap=self._with_bubblewrap)


def _champion_failed(trial: str, stopped: TrialStopped) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"the champion did not finish the trial '{trial}': {stopped.ending.value}: {stopped.detail}"
    )


def _is_slower(result: TrialResult) -> bool:
    ours, theirs = result.answer_p95_ms, result.champion_p95_ms
    return ours is not None and theirs is not None and ours > max_answer_ms(theirs)


def _show_part(show: Show, name: str, place: int, num: int, share: float) -> None:
    show(name, (place + share) / num)


@cache
def recorded_attacks() -> tuple[News, ...]:
    """The items of every attack of the sanitiser's evaluation, recorded; an id begins with its class."""
    text = files("htfi.pipeline.sandbox").joinpath("attacks.jsonl").read_bytes()
    return tuple(msgspec.json.decode(line, type=News) for line in text.splitlines())


def _write_verdict(governance: Path, index: int, verdict: SandboxVerdict) -> Path:
    """The verdict as JSON and as a signed note, for people and other programs; the log is what counts."""
    folder = governance / VERDICTS
    make_private(folder)
    content = msgspec.json.format(encode_entry(verdict)) + b"\n"
    file = folder / f"{index:06d}-{verdict.digest[:12]}.json"
    write_atomically(file, content)
    lines = (
        NOTE_ORIGIN, f"{verdict.candidate_kind.value} {verdict.digest}", "passed" if verdict.passed else "rejected",
        f"entry {index}", hashlib.sha256(content).hexdigest(),
    )  # fmt: skip
    text = "".join(f"{line}\n" for line in lines)
    signer = load_key(governance / SIGNING_KEY)
    key = log_key(GOVERNANCE_ORIGIN, signer)
    note = SignedNote(text, (NoteSignature(key.name, key.key_id, signer.sign(text.encode())),))
    file = file.with_suffix(".note")
    write_atomically(file, str(note).encode())
    return file


def _merged(first: Tables, second: Tables) -> dict[str, dict[str, object]]:
    names = list(dict.fromkeys([*first, *second]))
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in names}


def _shape(tables: Tables) -> tuple[tuple[int, ...], tuple[float, ...]]:
    config = override(Settings(), "forecasting", **tables.get("forecasting", {})).forecasting
    return config.horizons, config.levels


def _answers(side: TrialSide, shape: tuple[tuple[int, ...], tuple[float, ...]]) -> SideAnswers:
    return SideAnswers(side.answers, side.seconds, *shape)


def _bounds(candidate: Candidate) -> Bounds:
    """Larger for a large model: its folder's weights are opened several times, in two precisions."""
    size = sum(
        file.stat().st_size for folder in candidate.folders for file in folder.rglob("*") if file.is_file()
    )
    reads = candidate.reads_news
    return Bounds(
        memory_bytes=(2 << 30) + 12 * size, open_s=180.0 if reads else 60.0, answer_s=60.0 if reads else 10.0,
        wall_s=900.0 if reads else 300.0,
    )  # fmt: skip

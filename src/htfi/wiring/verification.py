"""Opens what a record is verified with: the settings and models that a run names, for `htfi ledger` and the report."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from htfi import models
from htfi.adapters.keys.ed25519 import verify_signature
from htfi.adapters.keys.mark_key import mark_key_of
from htfi.adapters.stores.snapshot import read_whole
from htfi.decoding.marking import MarkKey
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.decision import Decision
from htfi.domain.errors import HtfiError, IntegrityError, InvalidInput
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.pipeline.audit.breakers import BreakerAuditor
from htfi.pipeline.audit.checkpoints import AuditedSignatures
from htfi.pipeline.audit.governed import GovernanceAuditor
from htfi.pipeline.audit.keys import NOISE_KEY
from htfi.pipeline.audit.readings import ReadingAuditor, ReadingSettings, WeightlessModel
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.audit.replay import ModelRole, ReplayedReading, ReplayModel
from htfi.pipeline.audit.replay import replay_reading as replay
from htfi.pipeline.audit.token_text import TokenText
from htfi.pipeline.audit.triggers import TriggerAuditor
from htfi.pipeline.record.entry import decode_entry, try_decode_entry
from htfi.wiring.control import governance_leaves
from htfi.wiring.models.config import ModelsConfig
from htfi.wiring.models.loading import LoadableModel, open_model
from htfi.wiring.models.readers import in_full_precision
from htfi.wiring.settings import SETTINGS_FILE, Settings, decode_settings


class BreakerChanges(NamedTuple):
    """Changes of circuit breakers: derived again; of those that watch news, compared with their limits; after the last
    decision, so that none tells of them.
    """

    num_derived: int
    num_of_items: int
    num_after: int


class RecomputeSummary(NamedTuple):
    """What was checked: readings, what could not be checked in how many of them, and decisions whose view no amendment
    has taken the place of.
    """

    num_readings: int
    num_not_checked: dict[str, int]
    num_pending: int
    num_apart: int = 0  # decisions checked without the ones before them, of which some were deleted
    breakers: BreakerChanges | None = None  # None where no bundle has any, or entries were deleted


def recompute_all(
    folder: Path,
    log: LogReader,
    size: int,
    progress: Callable[[int, int], None],
    named: Sequence[Path] = (),
) -> RecomputeSummary:
    """Check that quantiles, rationale and verdict of the first `size` entries follow from what they record, that each
    reading is that of its decision, and that what amends an earlier one changes its view alone. No model is
    loaded; `named` are folders of models that are not shipped.

    Raises: IntegrityError, naming the first entry that does not; DependencyUnavailable.
    """
    file = folder / SETTINGS_FILE
    data = read_whole(file)
    if data is None:
        raise IntegrityError(f"{file} is missing: without the settings no verdict can be derived again")
    digest, settings = sha256(data).hexdigest(), decode_settings(data, to_verify=True)
    amendments = AmendmentAuditor(log.entry)
    readings = ReadingAuditor(reading_terms(settings), ModelsByVersion(settings.models, named).model)
    triggers = TriggerAuditor(settings.triggers, log.entry)
    signatures = AuditedSignatures(verify_signature, str(log.key))
    leaves = governance_leaves(folder)
    pipeline = settings.pipeline
    max_group = pipeline.group_entries if pipeline.group_ms else 1  # at 0 ms each point is recorded by itself
    governance = GovernanceAuditor(settings.policy, leaves, signatures, max_group=max_group)
    breakers = BreakerAuditor(settings.policy, leaves)
    key = mark_key_of(folder)
    num_marked = Counter[str]()
    has_all = not log.tombstones(0, size)  # what follows from earlier entries cannot be derived without them
    has_breakers = has_all and breakers.is_needed
    num_apart = 0
    for index, entry in enumerate(log.entries(0, size)):
        if is_tombstone(entry):
            governance.pass_over()
            progress(index + 1, size)
            continue
        num_apart += not has_all
        try:
            if has_breakers and (moved := breakers.problems(decode_entry(entry))):
                raise IntegrityError(f"the governance log: {'; '.join(moved)}")
            problems = check_entry(
                entry,
                digest,
                settings.policy,
                amendments if has_all else None,
                settings.routing,
                settings.suspicion,
                readings if has_all else None,
                settings.sanitiser,
                settings.scheduling,
                triggers if has_all else None,
                governance,
            )
        except (msgspec.DecodeError, ValueError, KeyError, IndexError) as error:
            problems = [f"it is not a decision: {error}"]
        if problems:
            raise IntegrityError(f"entry {index} cannot be derived again: {'; '.join(problems)}")
        if name := missing_key(try_decode_entry(entry), key):
            num_marked[name] += 1
        progress(index + 1, size)
    if has_all and (problems := governance.last_problems()):
        raise IntegrityError(f"what people were asked cannot be derived again: {'; '.join(problems)}")
    if has_breakers and (moved := breakers.finish()):
        raise IntegrityError(f"the governance log: {'; '.join(moved)}")
    why = (
        "its tokens by a replay, because their noise follows from marking key {}, which is not in the folder"
    )
    unchecked = readings.num_unchecked + Counter({why.format(name): num for name, num in num_marked.items()})
    return RecomputeSummary(
        readings.num_read,
        dict(unchecked),
        amendments.num_awaiting,
        num_apart,
        BreakerChanges(breakers.num_derived, breakers.num_of_items, breakers.num_after)
        if has_breakers
        else None,
    )


def missing_key(decision: Decision | None, key: MarkKey | None) -> str:
    """The id of the marking key that a decision's own reading takes its noise from; empty where it is `key` or none."""
    trace = decision.view.trace if decision is not None and decision.view is not None else None
    if decision is None or trace is None or trace.temperature == 0.0:
        return ""
    named = decision.models.get(NOISE_KEY, "")
    return "" if key is not None and key.id == named else named


def replay_reading(
    decision: Decision, run: Path, target: Path | None, draft: Path | None = None
) -> ReplayedReading:
    """Generate the view of a decision again, which holds its trace.

    `target` is the folder of the model that wrote it, one of the shipped ones where it is not given; `draft` that of
    the model which finished a provisional one. Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    settings = run_settings(run, decision)
    named = {ModelRole.TARGET: target, ModelRole.DRAFT: draft}
    return replay(
        decision,
        settings.decoding,
        lambda version, role: cast(  # a cached property is not a property to a type checker
            "ReplayModel", find_writer(version, named[role], settings.models, f"--{role.value}")
        ),
        mark_key_of(run),
    )


def unsupported_views(
    entries: Iterable[bytes], asked: Sequence[Decision], settings: Settings, named: Sequence[Path] = ()
) -> tuple[list[str], list[str]]:
    """What of these decisions' views does not follow from their news and from the entries before them, and what could
    not be checked. `entries` are the ledger's from the first on; `named` folders of models.
    """
    earlier: list[bytes] = []
    amendments = AmendmentAuditor(earlier.__getitem__)
    readings = ReadingAuditor(reading_terms(settings), ModelsByVersion(settings.models, named).model)
    found: list[str] = []
    for entry in entries:
        earlier.append(entry)
        decision = try_decode_entry(entry)
        if decision is None:
            continue
        changed = amendments.problems(decision)
        if decision in asked:
            found += [f"{decision.id}: {problem}" for problem in readings.problems(decision) + changed]
        else:
            readings.history.add(decision)
    return found, list(readings.num_unchecked)


class ModelsByVersion:
    """Folders that a person names, those of settings, and the shipped ones; opened when they are looked for.

    None of them is loaded.
    """

    def __init__(self, config: ModelsConfig, named: Sequence[Path] = ()) -> None:
        self._config = config
        settings = [Path(folder) for folder in (config.target, config.draft) if folder]
        self._paths = list(dict.fromkeys((*named, *settings, models.TARGET, models.DRAFT, *models.EARLIER)))
        self.model = cache(self._model)
        self.opened = cache(self._opened)

    def _opened(self, version: str) -> LoadableModel | None:
        """The folder that holds a version, None where none at hand does."""
        for path in self._paths:
            try:
                found = open_model(path, self._config.precision, self._config.engine)
            except HtfiError:
                continue
            for opened in (found, in_full_precision(found)):
                if opened.version == version:
                    return opened
        return None

    def _model(self, version: str) -> WeightlessModel | None:
        opened = self.opened(version)
        if opened is None:
            return None
        vocabulary = Vocabulary(opened.tokenizer)
        return WeightlessModel(
            vocabulary,
            tuple(opened.tokenizer.opening),
            TokenText.of(vocabulary),
            opened.trust,
            opened.meaning,
        )


def reading_terms(settings: Settings) -> ReadingSettings:
    """What a run's settings say of its readings."""
    lead_ns = round(settings.prefetching.lead_s * 1e9)
    return ReadingSettings(settings.narrative, lead_ns)


def find_writer(version: str, named: Path | None, config: ModelsConfig, option: str) -> LoadableModel:
    """Raises: InvalidInput where the folder holds another model than wrote."""
    candidates = [named] if named is not None else [models.TARGET, models.DRAFT, *models.EARLIER]
    found = [open_model(path, config.precision, config.engine) for path in candidates]
    for opened in (*found, *(in_full_precision(one) for one in found)):
        if opened.version == version:
            return opened
    holds = " and ".join(f"{opened.folder.path} holds {opened.version}" for opened in found)
    raise InvalidInput(f"the reading is by {version}, but {holds}: name that model's folder with {option}")


def run_settings(run: Path, decision: Decision) -> Settings:
    """The settings of a run, which a decision was made under. Raises: IntegrityError, InvalidInput."""
    file = run / SETTINGS_FILE
    data = read_whole(file)
    if data is None:
        raise IntegrityError(f"{file} is missing: it states the precision of the model")
    if sha256(data).hexdigest() != decision.settings_digest:
        raise IntegrityError(f"{file} is not the settings of {decision.id}: repeat the run's command")
    return decode_settings(data, to_verify=True)

"""Derives every decision of a run again from its record and the run's settings. `htfi ledger verify` asks for it."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from htfi.adapters.stores.snapshot import read_whole
from htfi.domain.errors import IntegrityError
from htfi.governance.ledger.log import LogReader
from htfi.pipeline.audit.readings import ReadingAuditor
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.wiring.recorded_models import ModelsByVersion, reading_terms
from htfi.wiring.settings import SETTINGS_FILE, decode_settings


class RecomputeSummary(NamedTuple):
    """What was found well: readings that were held against their decisions, how many of them lacked what for that, and
    decisions whose view no amendment has taken the place of."""

    num_readings: int
    num_not_checked: dict[str, int]
    num_pending: int


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
        raise IntegrityError(f"{file} is missing: without the settings no verdict can be reached again")
    digest, settings = sha256(data).hexdigest(), decode_settings(data, to_verify=True)
    amendments = AmendmentAuditor(log.entry)
    readings = ReadingAuditor(reading_terms(settings), ModelsByVersion(settings.models, named).model)
    for index, entry in enumerate(log.entries(0, size)):
        try:
            problems = check_entry(
                entry,
                digest,
                settings.policy,
                amendments,
                settings.routing,
                settings.secure,
                readings,
                settings.sanitiser,
                settings.scheduling,
            )
        except (msgspec.DecodeError, ValueError, KeyError, IndexError) as error:
            problems = [f"it is no decision: {error}"]
        if problems:
            raise IntegrityError(f"entry {index} cannot be derived again: {'; '.join(problems)}")
        progress(index + 1, size)
    return RecomputeSummary(readings.num_read, dict(readings.num_unchecked), amendments.num_awaiting)

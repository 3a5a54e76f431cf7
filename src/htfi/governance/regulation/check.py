"""What a check is: its id, its articles by regime, what it reads, when the record does not let one judge, and its code.

A check takes the record's items one by one and keeps bounded state; `finish` comes once, at the end of the span.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from htfi.governance.regulation.findings import FindingLog, RuleRegime
from htfi.governance.regulation.record import (
    GovernanceRecord,
    MarkedFile,
    Observation,
    RecordedDecision,
    RecordReader,
)


class Check:
    """Base of the checks: does nothing with what it is not about."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        self.log = log
        self.reader = reader

    def decision(self, recorded: RecordedDecision) -> None:
        """A decision of the ledger."""

    def governance(self, entry: GovernanceRecord) -> None:
        """An entry of the governance log."""

    def output(self, file: MarkedFile) -> None:
        """A file of the run that readers get. They come first."""

    def order(self, seen: Observation) -> None:
        """An order event."""

    def finish(self, end_ns: int) -> None:
        """The record ends, its newest item at `end_ns`."""


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """One line of the catalogue. `articles` are the regimes' own citations; `make` gives a fresh check."""

    id: str
    title: str
    articles: Mapping[RuleRegime, str]
    reads: str
    not_judged: str
    make: Callable[[FindingLog, RecordReader], Check]

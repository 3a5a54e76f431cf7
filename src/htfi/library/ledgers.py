"""`htfi.open_ledger`: the record of a run, verified, listed and explained; `htfi ledger` calls the same functions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Any, NoReturn

import msgspec

from htfi.domain.counts import counted
from htfi.domain.decision import Decision
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.time import format_ns
from htfi.governance.ledger.audit import LogAudit
from htfi.governance.ledger.log import LogReader
from htfi.governance.ledger.note import SignedNote
from htfi.governance.ledger.tombstones import is_tombstone, parse_tombstone
from htfi.library.arguments import not_copied, whole_number
from htfi.library.frames import arrow_frame
from htfi.library.html import block, table_html
from htfi.narrative.audit import AuditSection, explain_decision
from htfi.pipeline.record.entry import decode_entry, entry_id, try_decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.outputs import check_outputs, decision_columns

Progress = Callable[[int, int], None]
_NUM_SHOWN = 10  # decisions in a notebook


def _quiet(_done: int, _total: int) -> None: ...


@dataclass(frozen=True, slots=True)
class LedgerVerification:
    """What was verified: every hash and signature of a ledger, and the files beside it, a line for each that holds.

    Examples:
        >>> import tempfile
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with htfi.open_run(folder, interval="1d") as run:
        ...     decisions = list(run.feed(bars))
        >>> with htfi.open_ledger(folder) as ledger:
        ...     verified = ledger.verify(recompute=True)
        >>> verified.num_entries == len(decisions)
        True
        >>> print(verified)                                   # doctest: +ELLIPSIS
        8 entries, each as it was recorded; root ...
    """

    num_entries: int
    root: str
    key: str
    num_checkpoints: int
    files: tuple[str, ...]
    num_deleted: int = 0  # of the entries: their leaf hashes stand, their bytes are gone

    def __str__(self) -> str:
        return f"{counted(self.num_entries, 'entry', 'entries')}, each as it was recorded; root {self.root}"


class AuditSections(tuple[AuditSection, ...]):
    """What became of the news in a decision, section by section."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join("\n".join((section.title, *section.lines)) for section in self)

    def _repr_html_(self) -> str:
        return "".join(
            block(section.title, *(f"<div>{escape(line)}</div>" for line in section.lines))
            for section in self
        )


class Ledger:
    """The ledger of a run's folder, open for reading, also during the run. Close it, or use it in a `with` block.

    Examples:
        >>> import tempfile
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with htfi.open_run(folder, interval="1d") as run:
        ...     decisions = list(run.feed(bars))
        >>> with htfi.open_ledger(folder) as ledger:
        ...     [one.id for one in ledger] == [one.id for one in decisions], len(ledger) == len(decisions)
        (True, True)
    """

    def __init__(self, folder: str | Path) -> None:
        """Raises: InvalidInput, IntegrityError, LedgerUnavailable."""
        self._folder = Path(folder)
        self._opened = open_ledger_readonly(self._folder)
        self._opened_in = get_ident()
        self._is_closed = False

    @property
    def _log(self) -> LogReader:
        if self._is_closed:
            raise InvalidInput(f"the ledger in {self._folder} is closed: open it again")
        if get_ident() != self._opened_in:
            raise InvalidInput(
                f"the ledger in {self._folder} was opened by another thread: open it in this one"
            )
        return self._opened

    def __len__(self) -> int:
        return self._log.size

    def __iter__(self) -> Iterator[Decision]:
        """Every decision that was not deleted, in the order in which they were recorded. Raises: InvalidInput."""
        for index, entry in enumerate(self._log.entries()):
            if not is_tombstone(entry):
                yield decision_of(index, entry)

    def __getitem__(self, which: int | str) -> Decision:
        """A decision by its number (from the end if negative) or its id. Raises: InvalidInput."""
        return decision_of(*find_entry(self._log, self._place(which)))

    def verify(self, *, recompute: bool = False) -> LedgerVerification:
        """Compute every hash again, check every signature and the files beside the ledger.

        With `recompute` every decision is derived again from its record. Raises: IntegrityError, naming what is bad.
        """
        audit, _, held, wrong = verify_log(self._folder, self._log)
        if recompute:
            from htfi.wiring.verification import recompute_all

            recompute_all(self._folder, self._log, audit.size, _quiet)
        if wrong:
            raise IntegrityError("; ".join(wrong))
        return LedgerVerification(
            audit.size,
            audit.root.hex(),
            str(self._log.key),
            audit.num_checkpoints,
            tuple(held),
            audit.num_deleted,
        )

    def decisions(self) -> Any:
        """Every decision as a row of an Arrow table: the columns of decisions.parquet (docs/record.md).

        A `pyarrow.Table` where pyarrow is installed, else an `htfi.library.arrow_table.ArrowTable`.
        """
        return arrow_frame(decision_columns(self._log))

    def explain(self, which: int | str) -> tuple[AuditSection, ...]:
        """What became of the news in a decision: read, set aside, weighed, disputed. `print` shows it as text.

        Raises: InvalidInput.
        """
        return AuditSections(explain_entry(self._log, self._place(which))[1])

    def _place(self, which: Any) -> str:
        if isinstance(which, str):
            return which
        number = whole_number("a decision's number", which)
        if not -len(self) <= number < len(self):
            raise InvalidInput(
                f"no decision {number}: the ledger holds {counted(len(self), 'entry', 'entries')}"
            )
        return str(number % len(self))

    def __repr__(self) -> str:
        if self._is_closed:
            return f"closed ledger in {self._folder}"
        return f"ledger of {counted(self._opened.size, 'entry', 'entries')} in {self._folder}"

    def _repr_html_(self) -> str:
        newest = [self._log.entry(place) for place in range(max(len(self) - _NUM_SHOWN, 0), len(self))]
        rows = [
            (
                one.id,
                format_ns(one.as_of_ns),
                f"{one.last_price:g}",
                one.regime.value,
                one.verdict.outcome.value,
            )
            for one in map(try_decode_entry, reversed(newest))
            if one is not None
        ]
        return block(
            repr(self), table_html(("newest decisions", "as of", "price", "regime", "verdict"), rows)
        )

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, f"open {self._folder} again where it is needed")

    def close(self) -> None:
        if not self._is_closed:
            self._log.close()
        self._is_closed = True

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_ledger(folder: str | Path) -> Ledger:
    """The ledger in the folder of a run. Raises: InvalidInput, IntegrityError, LedgerUnavailable.

    Examples:
        >>> import tempfile
        >>> import htfi
        >>> bars = [{"date": f"2024-03-{day:02}", "symbol": "ACME", "close": 10 + day % 3} for day in range(1, 29)]
        >>> folder = tempfile.mkdtemp()
        >>> with htfi.open_run(folder, interval="1d") as run:
        ...     decisions = list(run.feed(bars))
        >>> with htfi.open_ledger(folder) as ledger:
        ...     ledger[-1].id == decisions[-1].id, ledger.decisions().num_rows == len(decisions)
        (True, True)
    """
    return Ledger(folder)


def verify_log(
    folder: Path, log: LogReader, progress: Progress = _quiet
) -> tuple[LogAudit, SignedNote, Sequence[str], Sequence[str]]:
    """The audit of a ledger, its newest signed note, and what of the files beside it holds and does not, as lines.

    Raises: IntegrityError.
    """
    audit = log.verify(progress)
    _, note = log.checkpoint(audit.size)
    held, wrong = check_outputs(folder, log)
    return audit, note, held, wrong


def find_entry(log: LogReader, which: str) -> tuple[int, bytes]:
    """An entry by its number or its decision's id. Raises: InvalidInput where there is none."""
    if which.isdecimal():
        return int(which), log.entry(int(which))
    for index, entry in enumerate(log.entries()):
        if entry_id(entry) == which:
            return index, entry
    raise InvalidInput(f"the ledger has no decision '{which}': `htfi ledger show DIR` lists the newest")


def decision_of(index: int, entry: bytes) -> Decision:
    """The decision that an entry holds. Raises: InvalidInput where it is of another version, or was deleted."""
    if (gone := parse_tombstone(entry)) is not None:
        raise InvalidInput(
            f"entry {index} was deleted at {format_ns(gone.at_ns)} under the retention class {gone.retention_class}; "
            "its leaf hash stands in the ledger"
        )
    try:
        return decode_entry(entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"entry {index} is not a decision of this version: {error}") from error


def explain_entry(
    log: LogReader, which: str, target: Path | None = None
) -> tuple[Decision, tuple[AuditSection, ...]]:
    """A decision and what became of its news, the tokens in the words of the model of the folder `target`."""
    index, entry = find_entry(log, which)
    decision = decision_of(index, entry)
    first = _newest_with_news(decision, log.entries(0, index)) if decision.amends else None
    view, spell = decision.view, None
    if view is not None and view.trace is not None:
        from htfi.wiring.models.loading import token_text

        spell = token_text(view.trace, target)
    return decision, explain_decision(decision, first, spell)


def _newest_with_news(decision: Decision, entries: Iterable[bytes]) -> Decision | None:
    """The provisional decision that this one amends."""
    first = next((entry for entry in entries if entry_id(entry) == decision.amends), None)
    return None if first is None else try_decode_entry(first)

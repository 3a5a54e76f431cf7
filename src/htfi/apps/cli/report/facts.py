"""What the page says about a run besides its decisions: the ledger's checkpoint, the quarantine, other nodes."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from htfi.apps.cli.report.peers import PeerFacts, read_peers
from htfi.domain.events import Rejection
from htfi.domain.line_sums import sum_holds
from htfi.governance.ledger.log import LogView
from htfi.pipeline.intake.reasons import Reason as IntakeReason
from htfi.wiring.run_folder import QUARANTINE

EXAMPLES_PER_REASON = 3


@dataclass(slots=True)
class Reason:
    """Rows that share a reason in the quarantine file."""

    count: int = 0
    sources: dict[str, int] = field(default_factory=dict[str, int])
    examples: list[Rejection] = field(default_factory=list[Rejection])


@dataclass(slots=True)
class Facts:
    """`note` is the checkpoint that the ledger signed at this size."""

    folder: str
    note: str
    root: str
    size: int
    num_changed: int = 0  # lines of the quarantine that are not as the run wrote them
    quarantine: dict[str, Reason] = field(default_factory=dict[str, Reason])
    repaired: Reason = field(default_factory=Reason)
    peers: PeerFacts = field(default_factory=PeerFacts)


def read_facts(folder: Path, ledger: LogView, size: int) -> Facts:
    """Read what is there of the rest; what is missing is left out."""
    checkpoint, note = ledger.checkpoint(size)
    facts = Facts(str(folder), str(note), checkpoint.root.hex(), checkpoint.size)
    _read_quarantine(folder / QUARANTINE, facts)
    facts.repaired = facts.quarantine.pop(IntakeReason.REPAIRED, Reason())
    facts.peers = read_peers(folder)
    return facts


def _read_quarantine(path: Path, facts: Facts) -> None:
    decoder = msgspec.json.Decoder(Rejection)
    reasons: dict[str, Reason] = {}
    if not path.exists():
        return
    place = 0
    with path.open("rb") as file:
        for line in file:
            is_held, place = sum_holds(line, place), place + len(line)
            try:
                rejection = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                facts.num_changed += line.endswith(b"\n")  # else the last line of a run that was cut short
                continue
            if not is_held:
                facts.num_changed += 1
                continue
            reason = reasons.setdefault(rejection.reason, Reason())
            reason.count += 1
            reason.sources[rejection.source] = reason.sources.get(rejection.source, 0) + 1
            if len(reason.examples) < EXAMPLES_PER_REASON:
                reason.examples.append(rejection)
    facts.quarantine = dict(sorted(reasons.items(), key=lambda item: -item[1].count))

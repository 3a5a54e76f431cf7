"""What the page says about a run besides its decisions: the ledger's checkpoint, the quarantine, other nodes."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from htfi.apps.cli.report.peers import PeerFacts, read_peers
from htfi.domain.events import Rejection
from htfi.governance.ledger.log import LogView

QUARANTINE = "quarantine.jsonl"
EXAMPLES_PER_REASON = 3


@dataclass(slots=True)
class Reason:
    """Rows set aside for one reason."""

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
    quarantine: dict[str, Reason] = field(default_factory=dict[str, Reason])
    peers: PeerFacts = field(default_factory=PeerFacts)


def read_facts(folder: Path, ledger: LogView, size: int) -> Facts:
    """Read what is there of the rest; what is missing is left out."""
    checkpoint, note = ledger.checkpoint(size)
    facts = Facts(str(folder), str(note), checkpoint.root.hex(), checkpoint.size)
    facts.quarantine = _read_quarantine(folder / QUARANTINE)
    facts.peers = read_peers(folder)
    return facts


def _read_quarantine(path: Path) -> dict[str, Reason]:
    decoder = msgspec.json.Decoder(Rejection)
    reasons: dict[str, Reason] = {}
    if not path.exists():
        return reasons
    with path.open("rb") as file:
        for line in file:
            try:
                rejection = decoder.decode(line)
            except msgspec.DecodeError:
                continue  # the last line of a run that was cut short
            reason = reasons.setdefault(rejection.reason, Reason())
            reason.count += 1
            reason.sources[rejection.source] = reason.sources.get(rejection.source, 0) + 1
            if len(reason.examples) < EXAMPLES_PER_REASON:
                reason.examples.append(rejection)
    return dict(sorted(reasons.items(), key=lambda item: -item[1].count))

"""What the page says about a run besides its decisions: the ledger's checkpoint, the quarantine, other nodes."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from htfi.apps.cli.report.peers import PeerFacts, read_peers
from htfi.domain.errors import HtfiError
from htfi.domain.events import Rejection
from htfi.wiring.ledger import open_ledger_readonly

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
    """`note` is the ledger's newest signed checkpoint, or '' with `no_ledger` saying why there is none."""

    folder: str
    note: str = ""
    root: str = ""
    size: int = 0
    no_ledger: str = ""
    quarantine: dict[str, Reason] = field(default_factory=dict[str, Reason])
    peers: PeerFacts = field(default_factory=PeerFacts)


def read_facts(folder: Path) -> Facts:
    """Read what is there; what is missing is said on the page, not raised."""
    facts = Facts(str(folder))
    try:
        ledger = open_ledger_readonly(folder)
        try:
            checkpoint, note = ledger.checkpoint()
            facts.note, facts.root, facts.size = str(note), checkpoint.root.hex(), checkpoint.size
        finally:
            ledger.close()
    except HtfiError as error:
        facts.no_ledger = str(error)
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

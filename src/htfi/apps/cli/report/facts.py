"""What became of other nodes in a run: its peers.jsonl read back, and the page's section on them.

What the page says about a run besides its decisions: the ledger's checkpoint, the quarantine, other nodes.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import msgspec

from htfi.apps.cli.report.orders import OrderSurvey
from htfi.domain.events import QuarantinedRow
from htfi.domain.files import checksum_holds
from htfi.domain.peers import PeerChange
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.control.entries import GovernanceEntry
from htfi.governance.ledger.log import LogReader
from htfi.narrative.facts.statements.compared import ComparedDocument
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason as IntakeReason
from htfi.wiring.control import governance_entries
from htfi.wiring.event_file import EventFile
from htfi.wiring.notice_file import InputNotices, read_notices
from htfi.wiring.order_record import has_orders, order_events
from htfi.wiring.outputs import PEERS, QUARANTINE
from htfi.wiring.statement_file import read_statements

NUM_LATEST = 40
PEERS_LISTED = 64
_OTHERS = "others"
_TEXT_CHARS = 200
_MAX_NS = 1 << 62  # of a time that can be written


@dataclass(slots=True)
class PeerFacts:
    """Changes by peer and kind, and the newest NUM_LATEST; `num_unreadable` lines could not be read."""

    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    latest: deque[PeerChange] = field(default_factory=lambda: deque[PeerChange](maxlen=NUM_LATEST))
    num_unreadable: int = 0


def read_peers(folder: Path) -> PeerFacts:
    """What the file states; nothing where there is none."""
    facts = PeerFacts()
    decoder = msgspec.json.Decoder(PeerChange)
    try:
        with (folder / PEERS).open("rb") as file:
            for line in file:
                try:
                    change = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    facts.num_unreadable += 1
                    continue
                name = (
                    change.peer
                    if change.peer in facts.counts or len(facts.counts) < PEERS_LISTED
                    else _OTHERS
                )
                facts.counts.setdefault(name, Counter())[change.what] += 1
                facts.latest.append(change)
    except OSError:
        pass  # a run without other nodes; what is missing is not shown
    return facts


def peers_html(facts: PeerFacts) -> str:
    """The whole section, or nothing."""
    if not facts.latest:
        return ""
    rows = "".join(
        f"<tr><th>{escape(_shorten(peer))}</th><td>{sum(kinds.values()):,}</td>"
        f'<td class="text">{_kinds(kinds)}</td></tr>'
        for peer, kinds in sorted(facts.counts.items())
    )
    head = '<th>node</th><th>changes</th><th class="text">kinds of change</th>'
    table = f'<table class="words"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    latest = "".join(
        f"<tr><th>{_stamp(change.at_ns)}</th><td>{escape(_shorten(change.peer))}</td><td>{escape(_shorten(change.what))}</td>"
        f'<td class="text">{escape(_shorten(change.words))}</td></tr>'
        for change in reversed(facts.latest)
    )
    head = '<th>at (UTC)</th><th>node</th><th>change</th><th class="text"></th>'
    num = sum(sum(kinds.values()) for kinds in facts.counts.values())
    title = "Newest changes" if num > len(facts.latest) else "Changes, newest first"
    broken = (
        f'<p class="note">Lines that could not be read: {facts.num_unreadable:,}.</p>'
        if facts.num_unreadable
        else ""
    )
    return (
        '<section>\n  <h2>Other nodes</h2>\n  <p class="note">What this node observed of its peers, by its own clock: '
        f'states, requests sent to another node, refusals, leaders.</p>\n  <div class="scroll">{table}'
        f'<h3>{title}</h3><table class="words"><thead><tr>{head}</tr></thead><tbody>{latest}</tbody></table>'
        f"{broken}</div>\n</section>"
    )


def _kinds(kinds: Counter[str]) -> str:
    return ", ".join(f"{escape(_shorten(kind))} {num:,}" for kind, num in kinds.most_common(12))


def _stamp(at_ns: int) -> str:
    if not 0 <= at_ns < _MAX_NS:
        return "–"
    return format_ns(at_ns // NS_PER_S * NS_PER_S)[:19].replace("T", " ")


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"


EXAMPLES_PER_REASON = 3


@dataclass(slots=True)
class ReasonCount:
    """Rows that share a reason in the quarantine file."""

    count: int = 0
    sources: dict[str, int] = field(default_factory=dict[str, int])
    examples: list[QuarantinedRow] = field(default_factory=list[QuarantinedRow])


@dataclass(slots=True)
class ReportFacts:
    """`note` is the checkpoint that the ledger signed at this size."""

    note: str
    root: str
    size: int
    num_altered_lines: int = 0  # lines of the quarantine that are not as the run wrote them
    quarantine: dict[str, ReasonCount] = field(default_factory=dict[str, ReasonCount])
    repaired: ReasonCount = field(default_factory=ReasonCount)
    peers: PeerFacts = field(default_factory=PeerFacts)
    statements: list[ComparedDocument] = field(default_factory=list[ComparedDocument])
    governance: list[GovernanceEntry] = field(default_factory=list[GovernanceEntry])
    orders: OrderSurvey | None = None
    events: EventFile | None = None
    notices: InputNotices = field(default_factory=InputNotices)


def read_facts(folder: Path, ledger: LogReader, size: int, events: EventFile | None = None) -> ReportFacts:
    """Read what is there of the rest; what is missing is left out. `events` were read before."""
    checkpoint, note = ledger.checkpoint(size)
    facts = ReportFacts(str(note), checkpoint.root.hex(), checkpoint.size, events=events)
    _read_quarantine(folder / QUARANTINE, facts)
    facts.repaired = facts.quarantine.pop(IntakeReason.REPAIRED, ReasonCount())
    facts.peers = read_peers(folder)
    facts.notices = read_notices(folder)
    facts.statements = read_statements(folder)
    facts.governance = list(governance_entries(folder))
    if has_orders(folder):
        facts.orders = OrderSurvey().take_all(order_events(folder))
    return facts


def _read_quarantine(path: Path, facts: ReportFacts) -> None:
    decoder = msgspec.json.Decoder(QuarantinedRow)
    reasons: dict[str, ReasonCount] = {}
    if not path.exists():
        return
    place = 0
    with path.open("rb") as file:
        for line in file:
            is_held, place = checksum_holds(line, place), place + len(line)
            try:
                rejection = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                facts.num_altered_lines += line.endswith(
                    b"\n"
                )  # else the last line of a run that was cut short
                continue
            if not is_held:
                facts.num_altered_lines += 1
                continue
            reason = reasons.setdefault(rejection.reason, ReasonCount())
            reason.count += 1
            reason.sources[rejection.source] = reason.sources.get(rejection.source, 0) + 1
            if len(reason.examples) < EXAMPLES_PER_REASON:
                reason.examples.append(rejection)
    facts.quarantine = dict(sorted(reasons.items(), key=lambda item: -item[1].count))

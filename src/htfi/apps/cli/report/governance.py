"""The page's section on governance: stops, circuit breakers, the bundle in force. Every text is escaped here."""

from collections.abc import Sequence
from html import escape

from htfi.domain.counts import counted
from htfi.domain.time import NS_PER_S, format_ns
from htfi.governance.control.entries import BreakerMoved, BundleAdopted, GovernanceEntry, Reenabled, Stopped
from htfi.governance.control.state import ControlState, apply, bundle_words

NUM_LISTED = 60
_Row = tuple[str, str, str, str]  # what, scope, statistic over its threshold, words


def governance_html(entries: Sequence[GovernanceEntry]) -> str:
    """The whole section: what holds now, then what changed, newest first; empty where nothing did."""
    state, rows = ControlState(), list[tuple[GovernanceEntry, _Row]]()
    for entry in entries:
        state = apply(state, entry)
        row = _row(entry)
        if row is not None:
            rows.append((entry, row))
    if not rows:
        return ""
    listed = "".join(
        f"<tr><th>{_stamp(entry.at_ns)}</th><td>{entry.before:,}</td><td>{escape(what)}</td><td>{escape(scope)}</td>"
        f'<td>{escape(statistic)}</td><td class="text">{escape(words)}</td></tr>'
        for entry, (what, scope, statistic, words) in rows[: -NUM_LISTED - 1 : -1]
    )
    head = (
        "<th>at (UTC)</th><th>from decision</th><th>what</th><th>scope</th><th>statistic, limit</th>"
        '<th class="text">why, by whom</th>'
    )
    left_out = len(rows) - NUM_LISTED
    more = f'<p class="note">{left_out:,} earlier changes are not shown.</p>' if left_out > 0 else ""
    return (
        "<section>\n  <h2>Stops and circuit breakers</h2>\n"
        f'  <p class="note">{escape(bundle_words(state))}. {escape(_now(state))}</p>\n'
        f'  <div class="scroll"><table class="words"><thead><tr>{head}</tr></thead>'
        f"<tbody>{listed}</tbody></table></div>"
        f"{more}\n</section>"
    )


def _now(state: ControlState) -> str:
    """What is held back at the end of the run."""
    held = [f"stop of {scope}" for scope in state.stops]
    held += [f"{breaker} of {scope}" for breaker, scope in state.breakers]
    if not held:
        return "Nothing is held back at the end of the run."
    return f"Held back at the end of the run: {', '.join(held[:8])}" + (
        f" and {counted(len(held) - 8, 'more', 'more')}." if len(held) > 8 else "."
    )


def _row(entry: GovernanceEntry) -> _Row | None:
    match entry:
        case Stopped():
            return "stop", entry.scope, "", f"{entry.why} ({entry.by}, by {entry.cause.value})"
        case Reenabled():
            what = f"re-enabled {entry.breaker}".strip()
            return what, entry.scope, "", f"{entry.why} ({entry.by})"
        case BundleAdopted():
            return "bundle", "firm", "", bundle_words(ControlState(bundle=entry))
        case BreakerMoved():
            statistic = f"{entry.statistic:.4g}, {entry.threshold:.4g}" if entry.threshold else ""
            state = entry.state.value.replace("_", "-")
            return f"{entry.breaker} {state}", entry.scope, statistic, entry.evidence
        case _:
            return None


def _stamp(at_ns: int) -> str:
    return format_ns(at_ns // NS_PER_S * NS_PER_S)[:19].replace("T", " ")

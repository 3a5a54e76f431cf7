"""The panel of other nodes: how each is, what was placed there, what lately changed. Edge and cloud views show it."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from htfi.apps.cli.view.state import PeerStatus
from htfi.apps.display.drawing import INNER, MUTED, REGIME_STYLE, truncate_end, truncate_middle
from htfi.domain.decision import Regime
from htfi.domain.peers import PeerChange, PeerState
from htfi.domain.time import NS_PER_S, format_ns

_LEFT = " "
_GOOD, _WARNING, _BAD = REGIME_STYLE[Regime.NORMAL], REGIME_STYLE[Regime.STRESSED], REGIME_STYLE[Regime.SHOCK]
_STATE_STYLE = {
    PeerState.HEALTHY: ("●", _GOOD),
    PeerState.DEGRADED: ("◐", _WARNING),
    PeerState.DRAINING: ("◔", INNER),
    PeerState.SUSPECT: ("◌", _WARNING),
    PeerState.DEAD: ("✕", _BAD),
    PeerState.UNKNOWN: ("○", MUTED),
}
# what a person should see first
_URGENCY = {state: k for k, state in enumerate((
    PeerState.DEAD, PeerState.SUSPECT, PeerState.DEGRADED, PeerState.DRAINING, PeerState.UNKNOWN, PeerState.HEALTHY
))}  # fmt: skip
_CHANGE_STYLE = {
    **{state.value: style for state, (_, style) in _STATE_STYLE.items()},
    "reroute": _WARNING,
    "refused": _WARNING,
    "stale": MUTED,
    "leads": INNER,
    "follows": INNER,
    "joined": _GOOD,
    "reconnect": _GOOD,
}
_NUM_CHANGES = 4
_MIN_NAME, _CELLS_BESIDE_NAME = 8, 54


def nodes(
    peers: Sequence[PeerStatus],
    changes: Sequence[PeerChange],
    totals: Sequence[tuple[str, int]],
    utc_ns: int,
    width: int,
    num_lines: int,
) -> list[Text]:
    """At most `num_lines` lines, a blank one first; none where there are no peers. The least well stand first.

    `totals` are of all nodes together, each with its name; one that is zero is not shown.
    """
    if not peers or num_lines < 3:
        return []
    summed = "   ".join(f"{name} {num:,}" for name, num in totals if num)
    num_lines -= 2 + bool(summed)
    num_shown = min(len(changes), _NUM_CHANGES, num_lines // 2)
    num_lines -= num_shown
    ranked = sorted(peers, key=lambda peer: (_URGENCY[peer.state], -peer.num_placed, peer.name))
    shown = ranked if len(ranked) <= num_lines else ranked[: max(1, num_lines - 1)]
    lines = [Text(), *_rows(shown, width)]
    if len(shown) < len(ranked):
        rest = ranked[len(shown) :]
        lines.append(Text(f"{_LEFT}and {len(rest):,} more: {count_states(rest)}", MUTED))
    lines += [_change_line(change, utc_ns, width) for change in reversed(changes[len(changes) - num_shown :])]
    if summed:
        lines.append(Text(f"{_LEFT}{summed}", MUTED))
    return lines


def count_states(peers: Sequence[PeerStatus]) -> str:
    """'2 well, 1 dead', the worst first."""
    nums: dict[PeerState, int] = {}
    for peer in sorted(peers, key=lambda peer: _URGENCY[peer.state]):
        nums[peer.state] = nums.get(peer.state, 0) + 1
    return ", ".join(f"{num} {state.value}" for state, num in nums.items())


def change_text(change: PeerChange) -> str:
    """A change as one plain line with its time, for output that is not a terminal."""
    stamp = format_ns(change.at_ns // NS_PER_S * NS_PER_S).replace("T", " ").replace("Z", " UTC")
    what, words = truncate_end(change.what, 20), truncate_end(change.words, 200)
    return f"{stamp}  node {truncate_end(change.peer, 60)}: {what}  {words}".rstrip()


def _rows(peers: Sequence[PeerStatus], width: int) -> list[Text]:
    """A head and a row a peer. What no peer has takes no room: a cloud places nothing, few know their temperature."""
    has_heat = any(peer.temperature_c is not None for peer in peers)
    has_placed = any(peer.num_placed for peer in peers)
    most = max(_MIN_NAME, width - _CELLS_BESIDE_NAME)
    name_width = min(most, max(_MIN_NAME, *(len(peer.name) for peer in peers)))
    head = f"{_LEFT}{'nodes':<{name_width}}  {'state':<10}{'RTT p50/95':>12}{'queue':>6}{'step':>8}"
    head += f"{'temp':>5}" if has_heat else ""
    head += f"{'asked':>7}  ways" if has_placed else ""
    lines = [Text(head, MUTED)]
    for peer in peers:
        mark, style = _STATE_STYLE[peer.state]
        line = Text(f"{_LEFT}{truncate_middle(peer.name, name_width):<{name_width}}  ")
        line.append(f"{mark} {peer.state.value:<8}", style)
        line.append(f"{_rtt(peer):>12}{_or_dash(peer.num_queued):>6}{_ms(peer.step_ms):>8}")
        if has_heat:
            hot = f"{peer.temperature_c:.0f}°" if peer.temperature_c is not None else "–"
            line.append(f"{hot:>5}")
        if has_placed:
            line.append(f"{peer.num_placed:>7,}  ")
            line.append(_routes(peer.routes, width - len(line.plain)), MUTED)
        lines.append(line)
    return lines


def _rtt(peer: PeerStatus) -> str:
    if peer.rtt_p50_ms is None:
        return "–"
    return (
        f"{_figure(peer.rtt_p50_ms)}/{_figure(peer.rtt_p95_ms)} ms"
        if peer.rtt_p95_ms is not None
        else _ms(peer.rtt_p50_ms)
    )


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{_figure(value)} ms"


def _figure(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _or_dash(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _routes(ways: Mapping[str, int], width: int) -> str:
    """The ways that were used, the most used first; an ellipsis stands for what does not fit."""
    used = sorted(ways.items(), key=lambda item: -item[1])
    text = ", ".join(f"{truncate_end(name, 20)} {num:,}" for name, num in used if num)
    if len(text) <= width:
        return text
    return f"{text[: max(0, width - 1)].rpartition(' ')[0].rstrip(',')} …"  # no figure is cut in two


def _change_line(change: PeerChange, utc_ns: int, width: int) -> Text:
    line = Text(f"{_LEFT}{_age(utc_ns - change.at_ns):>8}  ", MUTED)
    line.append(f"{truncate_end(change.what, 10):<10}", _CHANGE_STYLE.get(change.what, ""))
    line.append(f" {truncate_middle(change.peer, 40)}  ")
    line.append(truncate_end(change.words, max(0, width - len(line.plain))), MUTED)
    return line


def _age(age_ns: int) -> str:
    """'now', '12 s ago', '3 min ago', '2 h ago'. A clock that was set back makes nothing older than now."""
    seconds = max(0, age_ns) // NS_PER_S
    if seconds < 1:
        return "now"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"

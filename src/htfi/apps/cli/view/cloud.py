"""What `htfi cloud` shows of itself: how busy it is, for whom, and how its peers are.

The command fills `CloudCounters`:

model = CloudViewModel("cloud-a → 0.0.0.0:7443")
with open_cloud_view(console, plain) as view:
    …
    if view.due():
        view.update(model.snapshot(counters))
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from htfi.apps.cli.view.display import ProgressView, Renderer, open_renderer
from htfi.apps.cli.view.nodes import count_states, nodes
from htfi.apps.cli.view.panels import format_seconds
from htfi.apps.cli.view.state import PeerStatus
from htfi.apps.display.drawing import INNER, MUTED, REGIME_STYLE, flow_facts, truncate_end, truncate_middle
from htfi.domain.decision import Regime
from htfi.domain.peers import PeerChange

_LEFT = " "
_RATE_SPAN_S = 3.0
_MIN_NAME, _CELLS_BESIDE_NAME = 8, 50
_TENANTS_BEFORE_PEERS = 8  # that have lines before all peers have


@dataclass(frozen=True, slots=True)
class TenantLine:
    """One edge, or the tenant that its requests are for: totals since the start; p95 of the time to a whole answer."""

    name: str
    num_open: int = 0
    num_requests: int = 0
    num_tokens: int = 0
    num_refused: int = 0
    p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class CloudCounters:
    """What a cloud counts. `num_rows` of at most `max_rows` are in work, `num_queued` wait for space.

    `num_tokens` tokens were accepted; of `num_drafted` guesses, `num_accepted` were accepted; totals since the start.
    `refused` counts by reason.
    """

    model: str = ""
    num_streams: int = 0
    num_rows: int = 0
    max_rows: int = 0
    num_queued: int = 0
    num_requests: int = 0
    num_answers: int = 0
    num_tokens: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    step_ms: float | None = None
    temperature_c: float | None = None
    is_draining: bool = False
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    tenants: tuple[TenantLine, ...] = ()
    peers: tuple[PeerStatus, ...] = ()
    changes: tuple[PeerChange, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudState:
    """One frame."""

    title: str
    counters: CloudCounters
    up_s: float = 0.0
    tokens_per_s: float = 0.0
    utc_ns: int = 0

    @property
    def changes(self) -> tuple[PeerChange, ...]:
        return self.counters.changes


class CloudViewModel:
    """Makes frames of counters: remembers a few of them for rates."""

    def __init__(
        self,
        title: str,
        now_s: Callable[[], float] = time.monotonic,
        utc_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._title = title
        self._now_s = now_s
        self._utc_ns = utc_ns
        self._start_s = now_s()
        self._marks: deque[tuple[float, int]] = deque()

    def snapshot(self, counters: CloudCounters) -> CloudState:
        """The frame for now."""
        now_s = self._now_s()
        self._marks.append((now_s, counters.num_tokens))
        while len(self._marks) > 2 and self._marks[1][0] <= now_s - _RATE_SPAN_S:
            self._marks.popleft()
        since_s, tokens = self._marks[0]
        span_s = max(now_s - since_s, 1e-9)
        return CloudState(
            title=self._title,
            counters=counters,
            up_s=now_s - self._start_s,
            tokens_per_s=(counters.num_tokens - tokens) / span_s,
            utc_ns=self._utc_ns(),
        )


def open_cloud_view(
    console: Console, plain: bool, now_s: Callable[[], float] = time.monotonic
) -> ProgressView[CloudState]:
    """Live on a terminal, plain lines elsewhere or when asked for."""
    return open_renderer(Renderer(cloud_frame, cloud_line), console, plain, now_s)


def cloud_frame(state: CloudState, width: int, height: int) -> list[Text]:
    """The whole view, at most `height` lines of at most `width` columns."""
    counters = state.counters
    lines = [*_title(state, width), *_work(state, width), *_done(state, width)]
    if counters.refused:
        refusals = sorted(counters.refused.items(), key=lambda item: -item[1])
        before = Text(f"{_LEFT}refused", REGIME_STYLE[Regime.STRESSED])
        lines += flow_facts([(truncate_end(why, 30), f"{num:,}", "") for why, num in refusals], width, before)
    half = height // 2 - len(lines)
    spare = height - len(lines) - 2 - min(_TENANTS_BEFORE_PEERS, len(counters.tenants))
    panel = nodes(counters.peers, counters.changes, (), state.utc_ns, width, max(5, half, spare))
    lines += _tenants(counters.tenants, width, height - len(lines) - len(panel))
    lines = [*lines, *panel][:height]
    for line in lines:
        line.truncate(width)
        line.no_wrap = True
    return lines


def cloud_line(state: CloudState) -> str:
    """The view where there is no terminal: one plain line."""
    counters = state.counters
    parts = [
        "draining" if counters.is_draining else "",
        f"up {format_seconds(state.up_s)}",
        f"{counters.num_streams:,} streams",
        f"{counters.num_rows:,} of {counters.max_rows:,} rows",
        f"{counters.num_queued:,} queued",
        f"{counters.num_answers:,} answers",
        f"{counters.num_tokens:,} tokens ({state.tokens_per_s:,.0f}/s)",
        f"{sum(counters.refused.values()):,} refused" if counters.refused else "",
        f"nodes {count_states(counters.peers)}" if counters.peers else "",
    ]
    return "  ".join(part for part in parts if part)


def _title(state: CloudState, width: int) -> list[Text]:
    text = Text(_LEFT)
    text.append("HTFI cloud", "bold")
    text.append(f"  {truncate_middle(state.title, max(8, width // 2))}  ", MUTED)
    text.append(f"up {format_seconds(state.up_s)}", "bold")
    if state.counters.is_draining:
        text.append("  ◔ draining", f"bold {INNER}")
    return flow_facts([("model", truncate_middle(state.counters.model, width - 8), "")], width, text)


def _work(state: CloudState, width: int) -> list[Text]:
    counters = state.counters
    text = Text(f"{_LEFT}rows ", MUTED).append(f"{counters.num_rows:,}")
    cells = 12
    reached = round(cells * min(1.0, counters.num_rows / max(1, counters.max_rows)))
    text.append(f" of {counters.max_rows:,} ", MUTED)
    text.append("━" * reached, INNER).append("─" * (cells - reached), MUTED)
    facts = [("queue", f"{counters.num_queued:,}", ""), ("streams", f"{counters.num_streams:,}", "")]
    if counters.step_ms is not None:
        facts.append(("step", f"{counters.step_ms:.1f} ms", ""))
    if counters.temperature_c is not None:
        facts.append(("temp", f"{counters.temperature_c:.0f}°", ""))
    return flow_facts(facts, width, text)


def _done(state: CloudState, width: int) -> list[Text]:
    counters = state.counters
    facts = [
        ("verified", f"{state.tokens_per_s:,.0f} tokens/s", ""),
        ("answers", f"{counters.num_answers:,} of {counters.num_requests:,}", ""),
        ("tokens", f"{counters.num_tokens:,}", ""),
    ]
    if counters.num_drafted:
        facts.append(("stood", f"{counters.num_accepted / counters.num_drafted:.0%}", ""))
    return flow_facts(facts, width)


def _tenants(tenants: tuple[TenantLine, ...], width: int, num_lines: int) -> list[Text]:
    """The busiest first, and a last line for those without space."""
    if not tenants or num_lines < 3:
        return []
    ranked = sorted(tenants, key=lambda tenant: (-tenant.num_open, -tenant.num_tokens, tenant.name))
    shown = ranked if len(ranked) <= num_lines - 2 else ranked[: max(1, num_lines - 3)]
    longest = max(_MIN_NAME, *(len(tenant.name) for tenant in shown))
    name_width = min(longest, max(_MIN_NAME, width - _CELLS_BESIDE_NAME))
    most = max(tenant.num_tokens for tenant in ranked)
    bar_width = max(0, min(30, width - name_width - 54))
    head = (
        f"{_LEFT}{'tenants':<{name_width}}{'open':>7}{'requests':>10}{'tokens':>12}{'refused':>9}{'p95':>11}"
    )
    lines = [Text(), Text(head, MUTED)]
    for tenant in shown:
        late = f"{tenant.p95_ms:,.1f} ms" if tenant.p95_ms is not None else "–"
        line = Text(f"{_LEFT}{truncate_middle(tenant.name, name_width):<{name_width}}{tenant.num_open:>7,}")
        line.append(f"{tenant.num_requests:>10,}{tenant.num_tokens:>12,}")
        line.append(
            f"{tenant.num_refused:>9,}", REGIME_STYLE[Regime.STRESSED] if tenant.num_refused else MUTED
        )
        line.append(f"{late:>11}  ").append("━" * round(bar_width * tenant.num_tokens / max(1, most)), INNER)
        lines.append(line)
    if len(shown) < len(ranked):
        rest = ranked[len(shown) :]
        tokens = sum(tenant.num_tokens for tenant in rest)
        lines.append(Text(f"{_LEFT}and {len(rest):,} more with {tokens:,} tokens", MUTED))
    return lines

"""What a cloud shows of itself."""

import dataclasses
import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from htfi.apps.cli.view.cloud import (
    CloudCounters,
    CloudViewModel,
    TenantLine,
    cloud_frame,
    cloud_line,
    open_cloud_view,
)
from htfi.apps.cli.view.state import PeerStatus
from htfi.domain.peers import PeerChange, PeerState
from view_states import Seconds, text_of

TENANTS = (TenantLine("edge-a", 2, 40, 800, 0, 21.5), TenantLine("edge-b", 5, 90, 1800, 3, None))
BUSY = CloudCounters(
    model="mini-target-int8",
    num_streams=2,
    num_rows=7,
    max_rows=32,
    num_queued=1,
    num_requests=130,
    num_answers=123,
    num_tokens=2600,
    num_drafted=2000,
    num_accepted=1920,
    step_ms=8.84,
    refused={"busy": 3},
    tenants=TENANTS,
    peers=(PeerStatus("cloud-b", PeerState.SUSPECT, 0.4, 0.9),),
    changes=(PeerChange(0, "cloud-b", "suspect", "not heard of for 300 ms"),),
)


def state_of(counters=BUSY, title="cloud-a → 0.0.0.0:7443"):
    return CloudViewModel(title, Seconds(), lambda: 5 * 10**9).snapshot(counters)


def test_the_frame_tells_load_tenants_peers_and_refusals():
    text = text_of(cloud_frame(state_of(), 100, 30))
    for part in (
        "rows 7 of 32",
        "queue 1",
        "step 8.8 ms",
        "123 of 130",
        "stood 96%",
        "busy 3",
        "◌ suspect",
        "5 s ago",
    ):
        assert part in text
    rows = [line.split()[:5] for line in text.splitlines() if line.startswith(" edge-")]
    assert rows == [["edge-b", "5", "90", "1,800", "3"], ["edge-a", "2", "40", "800", "0"]]
    assert "asked" not in text  # a cloud places nothing


def test_rates_are_those_of_the_last_seconds():
    seconds = Seconds()
    desk = CloudViewModel("x", seconds)
    desk.snapshot(CloudCounters(num_tokens=1000, num_answers=10))
    seconds.now += 2
    state = desk.snapshot(CloudCounters(num_tokens=5000, num_answers=50))
    assert (state.tokens_per_s, state.up_s) == (2000, 2)


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("height", [6, 24, 50])
@pytest.mark.parametrize("num", [0, 2, 300])
def test_a_frame_never_exceeds_its_terminal(width, height, num):
    counters = CloudCounters(
        model="m" * 200,
        refused={f"reason {k}": 10**6 for k in range(num)},
        tenants=tuple(
            TenantLine(f"edge-of-a-very-long-name-{k}", 9, 10**6, 10**9, 10**6, 1e6) for k in range(num)
        ),
        peers=tuple(PeerStatus(f"cloud{k}", PeerState.HEALTHY) for k in range(num)),
    )
    lines = cloud_frame(state_of(counters, "t" * 300), width, height)
    assert len(lines) <= height
    assert max(cell_len(line.plain) for line in lines) <= width


def test_tenants_without_room_are_counted():
    tenants = tuple(TenantLine(f"edge-{k:03}", num_tokens=k) for k in range(100))
    text = text_of(cloud_frame(state_of(CloudCounters(tenants=tenants)), 80, 13))
    assert "edge-099" in text
    assert "and 93 more with 4,278 tokens" in text


def test_names_of_tenants_cannot_send_escape_codes():
    evil = "\x1b]0;owned\x07\r"
    counters = CloudCounters(model=evil, refused={evil: 1}, tenants=(TenantLine(evil, 1),))
    console = Console(file=io.StringIO(), width=120, color_system=None)
    for line in cloud_frame(state_of(counters, evil), 120, 30):
        console.print(line)
    assert not set(console.file.getvalue()) & {"\x1b", "\x07", "\r"}


def test_without_a_terminal_it_prints_changes_and_a_line():
    console = Console(file=io.StringIO(), width=40)
    with open_cloud_view(console, plain=False) as view:
        view.update(state_of())
    change, line = console.file.getvalue().splitlines()
    assert change.endswith("node cloud-b: suspect  not heard of for 300 ms")
    assert line == cloud_line(state_of())
    for part in ("2 streams", "7 of 32 rows", "1 queued", "2,600 tokens", "3 refused", "1 suspect"):
        assert part in line


@pytest.mark.parametrize("width", [80, 160])
def test_every_figure_of_a_busy_cloud_is_whole(width):
    name = "edge-of-the-frankfurt-desk-02"
    busy = dataclasses.replace(
        BUSY,
        num_requests=123_456_789,
        num_answers=123_456_700,
        num_tokens=9_876_543_210,
        temperature_c=65.0,
        refused={"more than a tenant may have": 1_234, "busy": 567},
        tenants=(TenantLine(name, 2, 1_234_567, 123_456_789, 1_234, 21.5),),
    )
    lines = cloud_frame(
        CloudViewModel("cloud1 → 127.0.0.1:7401", Seconds(), lambda: 0).snapshot(busy), width, 40
    )
    text = text_of(lines)
    assert max(cell_len(line.plain) for line in lines) <= width
    for figure in (
        "model mini-target-int8",
        "answers 123,456,700 of 123,456,789",
        "tokens 9,876,543,210",
        "stood 96%",
        "temp 65°",
        "more than a tenant may have 1,234",
        "busy 567",
        f"{name}      2 ",
    ):
        assert figure in text

"""The panel of other nodes, and what is said of decisions that may still change."""

import io

import pytest
from msgspec import structs
from rich.cells import cell_len
from rich.console import Console

from htfi.apps.cli.view.display import RUN_RENDERER, LineView
from htfi.apps.cli.view.nodes import nodes
from htfi.apps.cli.view.panels import frame, one_line
from htfi.apps.cli.view.state import DecisionStatus, PeerStatus, RunCounters, ViewModel
from htfi.domain.news_view import NewsView
from htfi.domain.peers import PeerChange, PeerState
from htfi.pipeline.decided import DecidedSeries
from view_states import Seconds, state_of, text_of

NOW_NS = 1_700_000_000 * 10**9
PEER = PeerStatus(
    "cloud-a", PeerState.HEALTHY, 20.1, 24.0, 3, 13.2, 61.0, 120, {"in flight": 88, "plain": 32}
)
PEERS = (PEER, PeerStatus("cloud-b", PeerState.DEAD), PeerStatus("cloud-c", PeerState.DEGRADED, 110.0, 190.0))
CHANGES = (
    PeerChange(NOW_NS - 200 * 10**9, "cloud-b", "joined", "first heard of"),
    PeerChange(NOW_NS - 12 * 10**9, "cloud-b", "dead", "not heard of for 420 ms"),
    PeerChange(NOW_NS - 10**8, "cloud-a", "reroute", "4 requests from cloud-b, 31 tokens kept"),
)


def plain(lines) -> list[str]:
    return [line.plain for line in lines]


def panel(peers=PEERS, changes=CHANGES, width=100, room=12, num_answered_locally=0):
    return plain(nodes(peers, changes, [("edge alone", num_answered_locally)], NOW_NS, width, room))


def test_a_run_without_peers_has_no_panel():
    assert panel(()) == []


def test_a_row_tells_state_in_a_word_and_every_figure_that_is_known():
    row = next(line for line in panel() if "cloud-a" in line and "well" in line)
    assert row.split() == [
        "cloud-a",
        "●",
        "well",
        "20/24",
        "ms",
        "3",
        "13",
        "ms",
        "61°",
        "120",
        "in",
        "flight",
        "88,",
        "plain",
        "32",
    ]
    unknown = next(line for line in panel() if "cloud-b" in line)
    assert unknown.split() == ["cloud-b", "✕", "dead", "–", "–", "–", "–", "0"]


def test_the_least_well_stand_first():
    assert [line.split()[0] for line in panel()[2:5]] == ["cloud-b", "cloud-c", "cloud-a"]


def test_every_state_has_a_sign_and_a_word_of_its_own():
    rows = panel(tuple(PeerStatus(f"n{k}", state) for k, state in enumerate(PeerState)), ())[2:]
    assert {row.split()[2] for row in rows} == {state.value for state in PeerState}
    assert len({row.split()[1] for row in rows}) == len(PeerState)


def test_changes_are_told_newest_first_with_their_age():
    told = [line.split() for line in panel()[-3:]]
    assert [
        line[: line.index(name)] for line, name in zip(told, ("reroute", "dead", "joined"), strict=True)
    ] == [
        ["now"],
        ["12", "s", "ago"],
        ["3", "min", "ago"],
    ]


@pytest.mark.parametrize("width", [40, 80, 100, 160])
@pytest.mark.parametrize("height", [8, 24, 60])
@pytest.mark.parametrize("num_peers", [1, 3, 200])
def test_a_frame_with_peers_never_exceeds_its_terminal(make_decisions, width, height, num_peers):
    peers = tuple(
        PeerStatus(f"cloud-of-a-very-long-name-{k}", PeerState.SUSPECT, 1e4, 1e5, 10**6)
        for k in range(num_peers)
    )
    changes = tuple(PeerChange(NOW_NS, "cloud" * 30, "reroute" * 9, "words " * 90) for _ in range(20))
    state = state_of(make_decisions(5, ("A", "B")), peers=peers, changes=changes, num_answered_locally=5)
    lines = frame(state, width, height)
    assert len(lines) <= height
    assert max(cell_len(line.plain) for line in lines) <= width


def test_what_the_target_could_not_write_in_time_is_summed_up_in_the_panel(make_decisions):
    counts = {"num_answered_locally": 7, "num_provisional": 3, "num_amended": 2}
    text = text_of(frame(state_of(make_decisions(2), peers=PEERS, **counts), 80, 24))
    assert text.count("provisional") == 1
    assert "edge alone 7   provisional 3   amended 2\n" in text
    assert "lost" not in text


def test_ways_that_do_not_fit_leave_an_ellipsis_and_never_the_lesser_ones():
    (row,) = [line for line in panel((PEER,), (), width=76)[2:] if "cloud-a" in line]
    assert row.endswith("in flight 88 …")


def test_peers_without_room_are_counted_by_state():
    peers = tuple(PeerStatus(f"c{k}", PeerState.HEALTHY if k else PeerState.DEAD) for k in range(30))
    told = "\n".join(panel(peers, (), room=8, num_answered_locally=7))
    assert "✕ dead" in told
    assert "and 26 more: 26 well" in told
    assert "edge alone 7" in told


def test_text_of_peers_cannot_send_escape_codes(make_decisions):
    evil = "\x1b]0;owned\x07\x1b[2J\r\n"
    state = state_of(
        make_decisions(1),
        peers=(PeerStatus(evil, PeerState.HEALTHY, num_placed=1, routes={evil: 1}),),
        changes=(PeerChange(NOW_NS, evil, evil, evil),),
    )
    console = Console(file=io.StringIO(), width=120, color_system=None)
    for line in frame(state, 120, 40):
        console.print(line)
    with LineView(RUN_RENDERER, console) as view:
        view.update(state)
    assert not set(console.file.getvalue()) & {"\x1b", "\x07", "\r"}


def test_plain_lines_tell_each_change_once():
    console, desk = Console(file=io.StringIO(), width=40), ViewModel("x", Seconds())
    with LineView(RUN_RENDERER, console) as view:
        for changes in (CHANGES[:1], CHANGES[:2], CHANGES[:2], CHANGES[1:]):
            view.update(desk.snapshot(RunCounters(peers=PEERS, changes=changes)))
    lines = console.file.getvalue().splitlines()
    told = [line for line in lines if "node " in line]
    assert [line.split("node ")[1].split()[1] for line in told] == ["joined", "dead", "reroute"]
    assert told[1].startswith("2023-11-14 22:13:08 UTC  node cloud-b: dead")
    assert len(lines) == 4 + 3


def test_plain_lines_tell_all_that_is_left_where_much_happened_between():
    console, desk = Console(file=io.StringIO(), width=40), ViewModel("x", Seconds())
    with LineView(RUN_RENDERER, console) as view:
        view.update(desk.snapshot(RunCounters(changes=CHANGES[:1])))
        view.update(desk.snapshot(RunCounters(changes=CHANGES[1:])))
    assert console.file.getvalue().count("node ") == 3


def test_the_one_line_counts_nodes_by_state_and_late_answers():
    line = one_line(
        ViewModel("x", Seconds()).snapshot(RunCounters(peers=PEERS, num_provisional=3, num_pending=1))
    )
    assert "nodes 1 dead, 1 ill, 1 well" in line
    assert "3 provisional  1 awaited" in line
    assert "amended" not in line


def view_of(decision, provisional):
    return NewsView(1.0, 2.0, 1.5, 0.8, (), decision.as_of_ns, 1, reader="mini@1", provisional=provisional)


def test_a_provisional_decision_is_marked_until_its_amendment_takes_its_place(make_decisions):
    (first,) = make_decisions(1)
    provisional = structs.replace(first, view=view_of(first, True))
    amendment = structs.replace(first, id=first.id + "+", view=view_of(first, False), amends=first.id)
    desk = ViewModel("x", Seconds())
    desk.record(DecidedSeries.of(provisional))
    state = desk.snapshot(RunCounters())
    assert state.series[0].status is DecisionStatus.PROVISIONAL
    for width in (80, 120):
        assert "~ provisional" in text_of(frame(state, width, 40))
    desk.record(DecidedSeries.of(amendment))
    state = desk.snapshot(RunCounters())
    assert state.series[0].status is DecisionStatus.AMENDED
    assert len(state.series[0].history) == 1
    assert "✓ amended since" in text_of(frame(state, 80, 40))


def test_an_amendment_of_an_older_decision_does_not_turn_the_clock_back(make_decisions):
    first, second = make_decisions(2)
    desk = ViewModel("x", Seconds())
    for decision in (first, second, structs.replace(first, id="late", amends=first.id)):
        desk.record(DecidedSeries.of(decision))
    (series,) = desk.snapshot(RunCounters()).series
    assert (series.last_price, len(series.history), series.status) == (
        second.last_price,
        2,
        DecisionStatus.FINAL,
    )

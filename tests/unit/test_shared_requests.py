"""Requests to stop and to go on, shared by the nodes of a governance folder: all, once, from named nodes alone."""

import errno
import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from htfi.adapters.stores import control_folder
from htfi.adapters.stores.adoption_folder import read_hold, write_hold, write_nodes
from htfi.adapters.stores.control_folder import (
    CONTROL_FOLDER,
    ControlWatcher,
    read_requests,
    still_asked,
    write_request,
)
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.governance import BreakerState
from htfi.governance.config import PolicyConfig
from htfi.governance.control.entries import BreakerMoved, StopCause, Stopped
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.governance.control.sharing import MissingRequests, encode_control
from htfi.pipeline.governed import RunGovernance
from htfi.wiring.bundles import init_folder
from htfi.wiring.cluster import control_requests
from htfi.wiring.cluster.bundles import name_nodes
from htfi.wiring.cluster.control_requests import ClusterGovernance, SharedRequests
from htfi.wiring.control import open_governance, request_reenabling
from htfi.wiring.ledger import create_signing_key

NODES = ("edge1", "cloud1", "edge2")
LINKS = {("edge1", "cloud1"), ("cloud1", "edge1"), ("edge2", "cloud1"), ("cloud1", "edge2")}


def stop(number: int, **changes: object) -> StopRequest:
    stated = StopRequest(f"stop-{number}-ab", number, "firm", "Ann Lee", "drill")
    return msgspec.structs.replace(stated, **changes)


class Cluster:
    """Three nodes, the edges linked with the cloud alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now_s = folder, 0.0
        self.nodes: dict[str, SharedRequests] = {}
        for name in NODES:
            (folder / name).mkdir()
            write_nodes(folder / name, NODES)
            self.start(name)

    def start(self, name: str) -> None:
        self.nodes[name] = SharedRequests(self.folder / name, name, lambda: self.now_s)

    def lay(self, name: str, request: StopRequest | ReenableRequest) -> None:
        write_request(self.folder / name / CONTROL_FOLDER, request)

    def run(self, rounds: int = 4) -> int:
        """Let the nodes that are up exchange messages; how many were sent."""
        num = 0
        for _ in range(rounds):
            self.now_s += 0.3
            queue = [(name, *one) for name, node in self.nodes.items() for one in node.due()]
            while queue:
                sender, to, body = queue.pop(0)
                if (sender, to) not in LINKS or to not in self.nodes:
                    continue
                num += 1
                queue += [(to, *one) for one in self.nodes[to].received(sender, body) or ()]
        return num

    def known(self, name: str) -> dict[str, StopCause | None]:
        found, wrong = read_requests(self.folder / name / CONTROL_FOLDER)
        assert wrong == []
        return {one.id: one.cause if isinstance(one, StopRequest) else None for one in found}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_stop_of_one_edge_reaches_the_other_through_the_cloud(cluster: Cluster) -> None:
    cluster.lay("edge1", stop(1))
    cluster.run()
    assert cluster.known("edge1") == {"stop-1-ab": StopCause.COMMAND}
    assert cluster.known("cloud1") == {"stop-1-ab": StopCause.PEER}
    assert cluster.known("edge2") == {"stop-1-ab": StopCause.PEER}


def test_the_end_of_a_stop_travels_as_it_was_signed(cluster: Cluster) -> None:
    cluster.lay("edge1", stop(1))
    cluster.run()
    cluster.lay("edge2", ReenableRequest("reenable-2-ab", 2, "firm", "Bo Chan", "over", signed="note"))
    cluster.run()
    (_, told) = read_requests(cluster.folder / "edge1" / CONTROL_FOLDER)[0]
    assert told == ReenableRequest("reenable-2-ab", 2, "firm", "Bo Chan", "over", signed="note")


def test_a_node_that_was_away_is_told_when_it_is_back(cluster: Cluster) -> None:
    del cluster.nodes["edge2"]
    cluster.lay("edge1", stop(1))
    cluster.run()
    assert cluster.known("edge2") == {}
    cluster.start("edge2")
    cluster.run()
    assert cluster.known("edge2") == {"stop-1-ab": StopCause.PEER}


def test_what_all_know_is_not_sent_again(cluster: Cluster) -> None:
    for number in range(3):
        cluster.lay("edge1", stop(number))
    cluster.run(8)
    files = {name: len(cluster.known(name)) for name in NODES}
    assert files == dict.fromkeys(NODES, 3)
    cluster.now_s = 100.0
    cluster.run(1)  # everybody says what it knows
    assert cluster.run(1) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        stop(1, id="../../evil"),
        stop(1, id="a/b"),
        stop(1, id="x" * 130),
        stop(1, scope="everything"),
        stop(1, by="Ann\nLee"),
        stop(1, why="x" * 10_000),
    ],
)
def test_a_request_that_could_not_have_been_asked_is_left_out(cluster: Cluster, wrong: StopRequest) -> None:
    body = encode_control(MissingRequests((wrong, stop(2))))
    assert cluster.nodes["cloud1"].received("edge1", body) == ()
    assert cluster.known("cloud1") == {"stop-2-ab": StopCause.PEER}
    assert not (cluster.folder / "evil.json").exists()


def test_a_node_that_is_not_named_tells_nothing(cluster: Cluster) -> None:
    body = encode_control(MissingRequests((stop(1),)))
    assert cluster.nodes["cloud1"].received("stranger", body) == ()
    assert cluster.known("cloud1") == {}


def test_bodies_about_something_else_are_left_to_others(cluster: Cluster) -> None:
    for body in (
        b"",
        b"\xff",
        b"{}",
        b'{"message":"bundle"}',
        encode_control(MissingRequests((stop(1),)))[:-2],
    ):
        assert cluster.nodes["cloud1"].received("edge1", body) is None


def test_a_folder_that_does_not_name_the_node_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InvalidInput, match="does not name the node 'edge9'"):
        SharedRequests(cluster.folder / "edge1", "edge9")


def test_a_stop_file_of_a_node_whose_clock_is_two_hours_behind_is_not_taken_as_ended(
    cluster: Cluster,
) -> None:
    now_ns = time.time_ns()
    cluster.lay("edge2", ReenableRequest(f"reenable-{now_ns}-ab", now_ns, "firm", "Bo Chan", "over"))
    cluster.run()
    file = cluster.folder / "edge1" / CONTROL_FOLDER / "STOP"
    file.touch()
    os.utime(file, ns=(now_ns - 2 * 3_600 * 10**9,) * 2)
    cluster.run()
    told = read_requests(cluster.folder / "edge2" / CONTROL_FOLDER)[0]
    (standing,) = still_asked(told, lambda _: True)
    assert isinstance(standing, StopRequest)
    assert standing.cause is StopCause.PEER


@pytest.mark.parametrize(("scope", "has_file"), [("firm", True), ("series:A", False)])
def test_a_stop_by_a_peer_holds_though_the_disk_has_no_room_for_it(
    scope: str, has_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    officer = create_signing_key(tmp_path / "ann.key", "ann")
    init_folder(tmp_path / "G", 1, [("ann", str(officer))])
    name_nodes(tmp_path / "G", ["edge1", "cloud1"])
    node = ClusterGovernance(tmp_path / "G", "edge1")
    told = encode_control(MissingRequests((stop(1, scope=scope),)))

    def full(folder: Path, request: StopRequest) -> Path:
        raise DependencyUnavailable(f"{folder}: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(control_requests, "write_request", full)
        for _ in range(2):
            node.received("cloud1", told)
            node.due()
        assert f"a stop of {scope} by a peer cannot be recorded" in node.bundles.hold()
        assert (tmp_path / "G" / CONTROL_FOLDER / "STOP").exists() is has_file
    node.received("cloud1", told)
    node.due()
    assert node.bundles.hold() == ""
    assert read_requests(tmp_path / "G" / CONTROL_FOLDER)[0][0].id == "stop-1-ab"


def test_a_word_that_cannot_be_left_is_none_and_leaves_no_draft_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hold(tmp_path, "")
    assert read_hold(tmp_path, time.time_ns()) == ""

    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            write_hold(tmp_path, "a stop")
    assert read_hold(tmp_path, time.time_ns()).startswith(f"{tmp_path} belongs to several nodes")
    assert list(tmp_path.iterdir()) == []


def moved(scope: str = "firm", state: BreakerState = BreakerState.OPEN) -> BreakerMoved:
    return BreakerMoved(7, 0, "model_swapped", scope, state, 9.5, 4.0, "another\nversion of 'ewma'")


@contextmanager
def governed_run(cluster: Cluster, node: str) -> Generator[tuple[RunGovernance, ControlWatcher]]:
    run = cluster.folder / f"run-{node}"
    run.mkdir(exist_ok=True)
    with open_governance(run, PolicyConfig(), shared=cluster.folder / node) as opened:
        yield opened


def take_stops(governance: RunGovernance, watcher: ControlWatcher) -> list[Stopped]:
    until_s = time.monotonic() + 20.0
    while not any(isinstance(one, Stopped) for one in governance.logged):
        assert time.monotonic() < until_s, "no stop came"
        if watcher.has_new:
            governance.take_requests(0, 1)
        time.sleep(0.002)
    return [one for one in governance.logged if isinstance(one, Stopped)]


@pytest.fixture
def governed(cluster: Cluster) -> Cluster:
    """The same nodes with folders that runs can go by."""
    for name in NODES:
        officer = create_signing_key(cluster.folder / f"{name}.key", "ann")
        shutil.rmtree(cluster.folder / name)
        init_folder(cluster.folder / name, 1, [("ann", str(officer))])
        name_nodes(cluster.folder / name, NODES)
        cluster.start(name)
    return cluster


def test_a_firm_wide_trip_at_one_node_stops_the_runs_of_the_others_once(governed: Cluster) -> None:
    with governed_run(governed, "edge1") as (tripped, _), governed_run(governed, "edge2") as (other, watcher):
        tripped.log_changes([moved()], is_replaying=False)
        (name,) = governed.known("edge1")
        governed.run()
        (stopped,) = take_stops(other, watcher)
    assert (stopped.cause, stopped.scope, stopped.by) == (StopCause.PEER, "firm", "the breaker model_swapped")
    assert stopped.why == "statistic 9.5 at the limit 4: another version of 'ewma'"
    governed.run(8)
    assert {node: list(governed.known(node)) for node in NODES} == {node: [name] for node in NODES}


def test_the_stop_by_a_trip_ends_by_a_named_person_at_all_nodes_and_not_before(governed: Cluster) -> None:
    with governed_run(governed, "edge1") as (tripped, _):
        tripped.log_changes([moved()], is_replaying=False)
        governed.run()
        tripped.log_changes([moved(state=BreakerState.CLOSED)], is_replaying=False)
        governed.run()
    for node in NODES:
        standing = still_asked(read_requests(governed.folder / node / CONTROL_FOLDER)[0], lambda _: True)
        assert [one.by for one in standing if isinstance(one, StopRequest)] == ["the breaker model_swapped"]
    request_reenabling(None, "firm", "Bo Chan", "seen to", shared=governed.folder / "edge2")
    governed.run()
    for node in NODES:
        assert still_asked(read_requests(governed.folder / node / CONTROL_FOLDER)[0], lambda _: True) == []


def test_a_trip_of_less_than_the_firm_or_one_made_again_stops_no_other_node(governed: Cluster) -> None:
    with governed_run(governed, "edge1") as (tripped, _):
        tripped.log_changes([moved("model:ewma"), moved("desk:default")], is_replaying=False)
        assert governed.known("edge1") == {}
        tripped.log_changes([moved()], is_replaying=False)
    with governed_run(governed, "edge1") as (again, _):
        again.log_changes([moved()], is_replaying=True)
    assert len(governed.known("edge1")) == 1


@pytest.mark.parametrize("cause", [StopCause.SIGNAL, StopCause.DEAD_MAN])
def test_a_signal_or_a_silent_supervisor_at_one_node_stops_the_others(
    governed: Cluster, cause: StopCause
) -> None:
    with governed_run(governed, "edge1") as (first, pushed), governed_run(governed, "edge2") as (other, seen):
        pushed.push(stop(3, id="signal-3", cause=cause))
        assert [one.cause for one in take_stops(first, pushed)] == [cause]
        governed.run()
        assert [one.cause for one in take_stops(other, seen)] == [StopCause.PEER]
        pushed.push(stop(3, id="signal-3", cause=cause))  # its own folder has it too
        first.take_requests(0, 1)
        assert len(take_stops(first, pushed)) == 1
    assert {node: list(governed.known(node)) for node in ("edge1", "edge2")} == {
        "edge1": ["signal-3"],
        "edge2": ["signal-3"],
    }


def test_a_trip_on_a_full_disk_leaves_an_empty_stop_file_and_is_logged(
    governed: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, request: StopRequest) -> Path:
        raise DependencyUnavailable(f"{folder}: No space left on device")

    with governed_run(governed, "edge1") as (tripped, watcher):
        monkeypatch.setattr(control_folder, "write_request", full)
        tripped.log_changes([moved()], is_replaying=False)
        assert any("is to stop the other nodes" in one for one in watcher.warnings)
        assert moved() in tripped.logged
    monkeypatch.undo()
    governed.run()
    (told,) = read_requests(governed.folder / "edge2" / CONTROL_FOLDER)[0]
    assert (told.id.partition("-")[0], told.scope) == ("STOP", "firm")  # type: ignore[union-attr]


def test_a_trip_in_a_folder_of_one_machine_leaves_nothing(tmp_path: Path) -> None:
    officer = create_signing_key(tmp_path / "ann.key", "ann")
    init_folder(tmp_path / "G", 1, [("ann", str(officer))])
    (tmp_path / "run").mkdir()
    with open_governance(tmp_path / "run", PolicyConfig(), shared=tmp_path / "G") as (tripped, _):
        tripped.log_changes([moved()], is_replaying=False)
    assert read_requests(tmp_path / "G" / CONTROL_FOLDER) == ([], [])


def test_a_request_of_the_same_instant_as_the_last_look_is_found(cluster: Cluster) -> None:
    cluster.lay("edge1", stop(1))
    control = cluster.folder / "edge1" / CONTROL_FOLDER
    cluster.nodes["edge1"].due()
    looked = control.stat().st_mtime_ns
    cluster.lay("edge1", stop(2))
    os.utime(control, ns=(looked, looked))  # as where the file system's clock has not moved
    cluster.run()
    assert set(cluster.known("edge2")) == {"stop-1-ab", "stop-2-ab"}

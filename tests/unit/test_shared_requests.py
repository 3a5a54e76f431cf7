"""Requests to stop and to go on, shared by the nodes of a governance folder: all, once, from named nodes alone."""

import errno
import os
import time
from pathlib import Path

import msgspec
import pytest

from htfi.adapters.stores.adoption_folder import read_hold, write_hold, write_nodes
from htfi.adapters.stores.control_folder import CONTROL_FOLDER, read_requests, still_asked, write_request
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.governance.control.entries import StopCause
from htfi.governance.control.requests import ReenableRequest, StopRequest
from htfi.governance.control.sharing import MissingRequests, encode_control
from htfi.wiring.bundles import init_folder
from htfi.wiring.cluster import control_requests
from htfi.wiring.cluster.bundles import name_nodes
from htfi.wiring.cluster.control_requests import ClusterGovernance, SharedRequests
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

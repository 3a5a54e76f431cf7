"""`GET /v1/nodes`: what the record, the settings and the edge say of nodes; what nobody knows is null."""

import time
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient
from test_service import BARS

import htfi
from htfi.apps.service.app import create_app
from htfi.domain.peers import PeerChange, PeerState
from htfi.scheduling.health.messages import NodeHealthMetrics
from htfi.scheduling.health.peer_contact import PeerFigures
from htfi.wiring.cluster.node_status import (
    DeviceStatus,
    DraftMode,
    NodeStatusBody,
    link_status,
)
from htfi.wiring.service.run_process import RunPlace
from link_processes import Stage, wait_for_lines, write_sources
from service_process import ServiceProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with htfi.open_run(tmp_path / "run", interval="1d", models=None) as run:
        list(run.feed(BARS[:40]))
    return tmp_path / "run"


def nodes_of(folder: Path) -> dict[str, object]:
    with TestClient(create_app({"": RunPlace(folder)}), base_url="http://127.0.0.1") as client:
        return client.get("/v1/nodes").json()


def figures(state: PeerState) -> PeerFigures:
    metrics = NodeHealthMetrics(queue=3, queue_ms=12.0, num_rows=2, step_p50_ms=4.0, power_w=55.0)
    return PeerFigures(state, "", 1.5, 3.0, (), 9, metrics)


def test_run_on_one_machine_knows_no_nodes_and_says_null(folder: Path) -> None:
    found = nodes_of(folder)
    assert (found["edge"], found["at"], found["is_current"], found["edge_device"]) == (None,) * 4
    assert (found["links"], found["changes"], found["num_alone"]) == ([], [], None)
    assert found["is_running"] is False


def test_links_queues_and_energy_are_those_that_the_edge_wrote(folder: Path) -> None:
    placed = {("cloud1", DraftMode.PIPELINED): 7, ("cloud2", DraftMode.PLAIN): 1}
    well = link_status("cloud1", "127.0.0.1:7401", figures(PeerState.HEALTHY), placed)
    dead = link_status("cloud2", None, figures(PeerState.DEAD), placed)
    status = NodeStatusBody("edge1", time.time_ns(), DeviceStatus(temperature_c=60.0), [well, dead], 2)
    (folder / "nodes.json").write_bytes(msgspec.json.encode(status))
    changes = [PeerChange(place, "cloud1", "well", "<b>heard</b>") for place in range(80)]
    lines = b"".join(msgspec.json.encode(one) + b"\n" for one in changes)
    (folder / "peers.jsonl").write_bytes(lines + b'{"at_ns":1,"pe')
    found = nodes_of(folder)
    assert (found["edge"], found["is_current"], found["num_alone"]) == (
        "edge1",
        False,
        2,
    )  # the run has ended
    assert found["links"] == msgspec.to_builtins([well, dead])
    assert (well.queue, well.device.power_w, well.placed) == (3, 55.0, {"in flight": 7})
    assert (dead.queue, dead.device.power_w, dead.placed) == (None, None, {"plain": 1})
    assert len(found["changes"]) == 50  # type: ignore[arg-type]
    assert found["changes"][0]["words"] == "<b>heard</b>"  # type: ignore[index]


@pytest.mark.slow
def test_a_real_edge_writes_its_links_while_it_runs(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    sources, out = write_sources(tmp_path, 60), tmp_path / "out"
    with Stage(tmp_path) as stage:
        cloud = stage.cloud()
        edge, _ = stage.edge(sources, out, {"cloud1": cloud.address}, "--pace", "2e5")
        wait_for_lines(out, edge, 10)
        with ServiceProcess("--follow", str(out)) as service:
            found = service.client.get("/v1/nodes").json()
    assert (found["edge"], found["is_current"], found["is_running"]) == ("edge1", True, True)
    (link,) = found["links"]
    assert (link["name"], link["state"]) == ("cloud1", "well")
    assert link["address"].startswith("127.0.0.1:")
    assert link["rtt_p50_ms"] > 0
    assert link["queue"] is not None
    assert found["placement"]["rungs"]

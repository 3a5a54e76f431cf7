"""A cluster from one TOML or from flags: the same nodes, and one line for what cannot be."""

from pathlib import Path

import pytest

from htfi.domain.errors import InvalidInput
from htfi.wiring.cluster.options import add_cloud, add_edge
from htfi.wiring.config import ClusterRole
from htfi.wiring.settings import load_settings, settings_digest

ROOT = Path(__file__).parents[2]


def test_the_example_of_a_cluster_holds_its_nodes() -> None:
    cluster = load_settings(ROOT / "deploy" / "cluster.toml", {}).cluster
    assert dict(cluster.clouds) == {"cloud1": "10.0.0.11:7401", "cloud2": "10.0.1.12:7401"}
    assert cluster.node("cloud1", ClusterRole.CLOUD).residency == ("eu",)
    assert cluster.node("edge2", ClusterRole.EDGE).address == ""


def test_flags_add_to_what_the_file_says() -> None:
    file = ROOT / "deploy" / "cluster.toml"
    settings = add_cloud(load_settings(file, {}), "cloud1", listen="127.0.0.1:0", certs="here")
    node = settings.cluster.node("cloud1", ClusterRole.CLOUD)
    assert (node.address, node.residency, settings.cluster.certificates) == ("127.0.0.1:0", ("eu",), "here")


def test_an_edge_needs_no_file() -> None:
    settings = add_edge(load_settings(environment={}), "edge1", clouds=["a=127.0.0.1:1", "b=[::1]:2"])
    assert dict(settings.cluster.clouds) == {"a": "127.0.0.1:1", "b": "[::1]:2"}


def test_where_work_runs_is_no_part_of_what_is_decided() -> None:
    plain = load_settings(environment={})
    assert settings_digest(add_edge(plain, "edge1", clouds=["a=127.0.0.1:1"])) == settings_digest(plain)


@pytest.mark.parametrize(
    ("clouds", "words"),
    [
        (["a"], "NAME=HOST:PORT"),
        (["a=nowhere"], "host:port"),
        (["a=127.0.0.1:70000"], "host:port"),
        (["a b=127.0.0.1:7"], "letters"),
        (["edge1=127.0.0.1:7"], "another --name"),
    ],
)
def test_what_cannot_be_a_node_is_told_in_one_line(clouds: list[str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        add_edge(load_settings(environment={}), "edge1", clouds=clouds)
    assert "\n" not in str(caught.value)


def test_a_node_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[cluster.nodes.c]\nrole = "cloud"\naddress = "127.0.0.1:1"\n')
    with pytest.raises(InvalidInput, match="no edge 'c': it has none"):
        load_settings(file, {}).cluster.node("c", ClusterRole.EDGE)
    file.write_text('[cluster.nodes.c]\nrole = "cloud"\n')
    with pytest.raises(InvalidInput, match="needs an address"):
        load_settings(file, {})
    file.write_text('[cluster.nodes.c]\nrole = "moon"\n')
    with pytest.raises(InvalidInput, match="role"):
        load_settings(file, {})

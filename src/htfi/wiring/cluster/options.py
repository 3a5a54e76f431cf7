"""What flags say of a node and its peers, as the cluster's table: a cluster needs no file. The node commands ask."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from htfi.domain.errors import InvalidInput
from htfi.wiring.config import ClusterRole
from htfi.wiring.settings import Settings, override


def add_edge(
    settings: Settings,
    name: str,
    *,
    clouds: Sequence[str] = (),
    certs: str | None = None,
    leader_group: str | None = None,
    probes: str | None = None,
) -> Settings:
    """Settings in whose cluster this edge and the clouds 'name=host:port' stand. Raises: InvalidInput."""
    nodes = _with_clouds(_node_table(settings), clouds)
    nodes[name] = _update_node(nodes.get(name), role=ClusterRole.EDGE.value, probes=probes)
    return _override_cluster(settings, nodes, certificates=certs, leader_group=leader_group)


def add_cloud(
    settings: Settings,
    name: str,
    *,
    listen: str | None = None,
    clouds: Sequence[str] = (),
    certs: str | None = None,
    residency: Sequence[str] = (),
    probes: str | None = None,
) -> Settings:
    """Settings in whose cluster this cloud and the others stand. Raises: InvalidInput."""
    nodes = _with_clouds(_node_table(settings), clouds)
    nodes[name] = _update_node(
        nodes.get(name),
        role=ClusterRole.CLOUD.value,
        address=listen,
        residency=list(residency) or None,
        probes=probes,
    )
    return _override_cluster(settings, nodes, certificates=certs)


def _node_table(settings: Settings) -> dict[str, dict[str, Any]]:
    return {name: asdict(node) for name, node in settings.cluster.nodes.items()}


def _with_clouds(nodes: dict[str, dict[str, Any]], clouds: Sequence[str]) -> dict[str, dict[str, Any]]:
    for cloud in clouds:
        name, found, address = cloud.partition("=")
        if not found:
            raise InvalidInput(f"--cloud {cloud}: write NAME=HOST:PORT; NAME is the name in its certificate")
        nodes[name] = _update_node(nodes.get(name), role=ClusterRole.CLOUD.value, address=address)
    return nodes


def _update_node(node: dict[str, Any] | None, **overrides: Any) -> dict[str, Any]:
    given = {key: value for key, value in overrides.items() if value is not None}
    if node is not None and node["role"] != given["role"]:
        raise InvalidInput(f"the cluster has this node as {node['role']}: take another --name")
    return {**(node or {}), **given}


def _override_cluster(settings: Settings, nodes: dict[str, dict[str, Any]], **overrides: Any) -> Settings:
    given = {key: value for key, value in overrides.items() if value is not None}
    return override(settings, "cluster", nodes=nodes, **given)

"""Which nodes there are, where they listen and what they may hold: one table for all of them. Settings hold it; edge
and cloud look themselves up in it by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds, setting, setting_from


class ClusterRole(StrEnum):
    """Edges hold features, drafts and the order of events; clouds hold targets."""

    EDGE = "edge"
    CLOUD = "cloud"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node."""

    role: ClusterRole = field(metadata={"meaning": "edge or cloud", "unit": ""})
    address: str = setting("", "HOST:PORT where a cloud listens")
    probes: str = setting("", "HOST:PORT of the liveness and readiness probes")
    residency: tuple[str, ...] = setting(
        (), "tags of data that a cloud may receive; it may receive data without a tag"
    )


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The nodes that work together."""

    certificates: str = setting("certs", "folder made by `htfi certs`")
    leader_group: str = setting("", "group of edges of which one leads; only the leader releases")
    drain_s: Annotated[float, Meta(ge=0.0, le=86_400.0)] = setting(
        30.0, "how long a node that stops may take to finish its work"
    )
    nodes: dict[str, NodeConfig] = setting_from(dict[str, NodeConfig], "the nodes by name")

    def __post_init__(self) -> None:
        check_bounds("cluster", self)
        for name, node in self.nodes.items():
            if not name or not set(name) <= _NAME_CHARACTERS:
                raise InvalidInput(
                    f"cluster.nodes.{name}: a name is made of letters, digits, '-', '_' and '.'"
                )
            if node.role is ClusterRole.CLOUD and not node.address:
                raise InvalidInput(f"cluster.nodes.{name}: a cloud needs an address, such as 10.0.0.2:7400")
            for address in filter(None, (node.address, node.probes)):
                split_address(address, f"cluster.nodes.{name}")

    @property
    def clouds(self) -> Mapping[str, str]:
        """Where each cloud is reached, by name."""
        return {name: node.address for name, node in self.nodes.items() if node.role is ClusterRole.CLOUD}

    def node(self, name: str, role: ClusterRole) -> NodeConfig:
        """Raises: InvalidInput where there is no such node in this role."""
        found = self.nodes.get(name)
        if found is None or found.role is not role:
            known = ", ".join(each for each, node in self.nodes.items() if node.role is role) or "none"
            raise InvalidInput(f"the cluster has no {role.value} '{name}': it has {known}")
        return found


_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def split_address(address: str, where: str) -> tuple[str, int]:
    """Host and port of 'host:port'. Raises: InvalidInput."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"{where}: an address is host:port, not '{address}'")
    return host.strip("[]"), int(port)

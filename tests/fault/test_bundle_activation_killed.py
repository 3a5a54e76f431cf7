"""Processes that agree on a bundle are killed while they do: started again they go on, and all have the same bundle."""

import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from htfi.adapters.keys.ed25519 import signing_key
from htfi.domain.time import NS_PER_S
from htfi.governance.bundles.bundle import (
    BundleHead,
    BundleKind,
    OfficerRoll,
    parse_bundle,
    write_bundle,
    write_officers,
)
from htfi.governance.bundles.in_force import BundleActivated, bundle_entries
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.ledger.note import NoteSignature, SignedNote
from htfi.wiring.cluster.bundles import activation_refusal, ask_activation, name_nodes
from htfi.wiring.governance_log import read_governance_log

NODES = ("a", "b", "c")
OFFICERS = [signing_key(name, bytes([k]) * 32) for k, name in enumerate(("ann", "ben", "cid"), 1)]
SEED = 7


class Cluster:
    """Three processes on loopback sockets, each with a governance folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        servers = [socket.create_server(("127.0.0.1", 0)) for _ in NODES]
        self.ports = [
            f"{node}={server.getsockname()[1]}" for node, server in zip(NODES, servers, strict=True)
        ]
        for server in servers:
            server.close()
        roll = OfficerRoll(2, {key.name: key.verifier_key for key in OFFICERS})
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for node in NODES:
            (folder / node).mkdir()
            (folder / node / "officers.toml").write_text(write_officers(roll))
            name_nodes(folder / node, NODES)

    def start(self, node: str) -> None:
        words = ["-m", "htfi_eval.bench.governance.bundle_node", str(self.folder / node), node, *self.ports]
        self.processes[node] = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)

    def kill(self, node: str) -> None:
        self.processes[node].kill()
        self.processes[node].wait()

    def activated(self, node: str) -> list[str]:
        log = read_governance_log(self.folder / node)
        if log is None:
            return []
        try:
            return [one.digest for one in bundle_entries(log.entries()) if isinstance(one, BundleActivated)]
        finally:
            log.close()


def signed_bundle(number: int, previous: str, num_officers: int = 2) -> tuple[str, str]:
    """The note and the digest of a bundle."""
    start_ns = time.time_ns() // NS_PER_S * NS_PER_S
    text = write_bundle(BundleHead(number, previous, BundleKind.QUORUM, "ann", start_ns), BundleTables())
    signatures = [
        NoteSignature(key.name, key.verifier_key.key_id, key.sign(text.encode()))
        for key in OFFICERS[:num_officers]
    ]
    return str(SignedNote(text, tuple(signatures))), parse_bundle(text).digest


def wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < until_s, "the nodes did not get on"
        time.sleep(0.05)


@pytest.mark.slow
def test_nodes_killed_while_they_activate_have_the_same_bundles_in_the_end(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    cluster = Cluster(tmp_path)
    try:
        for node in NODES:
            cluster.start(node)
        # One signature too few: refused by the node that is asked, with the reason.
        lone, _ = signed_bundle(1, "", num_officers=1)
        name = ask_activation(tmp_path / "a", lone)
        wait_for(lambda: bool(activation_refusal(tmp_path / "a", name)))
        assert "has 1 of 2 signatures" in activation_refusal(tmp_path / "a", name)

        digests: list[str] = []
        for number, asked in enumerate(("a", "b"), 1):
            note, digest = signed_bundle(number, digests[-1] if digests else "")
            digests.append(digest)
            ask_activation(tmp_path / asked, note)
            time.sleep(rng.uniform(0.0, 0.3))
            cluster.kill(asked)
            cluster.start(asked)
            wait_for(lambda: all(cluster.activated(node) == digests for node in NODES))

        # Two of three are down: the one that is left activates nothing.
        cluster.kill("b")
        cluster.kill("c")
        note, digest = signed_bundle(3, digests[-1])
        ask_activation(tmp_path / "a", note)
        wait_for(lambda: not list((tmp_path / "a" / "activate").glob("*.note")))
        time.sleep(0.5)
        assert cluster.activated("a") == digests
        cluster.start("b")
        wait_for(lambda: cluster.activated("a") == cluster.activated("b") == [*digests, digest])
        assert cluster.activated("c") == digests
    finally:
        for process in cluster.processes.values():
            process.kill()
            process.wait()


def test_a_node_whose_stream_a_peer_resets_connects_to_it_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    port = int(cluster.ports[1].partition("=")[2])
    try:
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(60.0)
            cluster.start("a")
            for _ in range(3):
                link, _ = server.accept()
                link.settimeout(60.0)
                assert link.recv(5) == b"\0\0\0\1a"
                # Closed without lingering, the connection is reset: what a killed process leaves that had not read all.
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.close()
    finally:
        for process in cluster.processes.values():
            process.kill()
            process.wait()

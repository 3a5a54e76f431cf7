"""Bundles and stops over real edges and a cloud, by the commands that people type."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from htfi.apps.cli.main import cli
from htfi.domain.errors import DependencyUnavailable
from htfi.governance.control.entries import (
    BundleAdopted,
    GovernanceEntry,
    Reenabled,
    ReenablingRefused,
    StopCause,
    Stopped,
)
from htfi.wiring import bundles
from htfi.wiring.control import governance_entries
from htfi.wiring.ledger import create_signing_key
from link_processes import Stage, environment, htfi

NODES = ("edge1", "edge2", "cloud1")
WAIT_S = 40.0  # far longer than any machine is busy
_MAPPING = '[[source]]\nname = "bars"\nstdin = true\nkind = "bar"\n'


def say(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


class Desk:
    """Two edges that take bars from a pipe, and a cloud; each with a governance folder of its own."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.folder, self.stage = folder, stage
        self.edges: dict[str, subprocess.Popen[bytes]] = {}
        self.day = 0
        (folder / "feeds.toml").write_text(_MAPPING)
        keys = {name: create_signing_key(folder / f"{name}.key", name) for name in ("ann", "bob")}
        officers = [f"--officer={name}={key}" for name, key in keys.items()]
        for node in NODES:
            say(
                "policy",
                "init",
                self.governance(node),
                "--quorum",
                2,
                *officers,
                *(f"--node={n}" for n in NODES),
            )

    def governance(self, node: str) -> Path:
        return self.folder / f"governance-{node}"

    def start(self) -> None:
        self.cloud = self.stage.cloud("cloud1", "--governance", self.governance("cloud1"))
        host, port = self.cloud.address
        for node in ("edge1", "edge2"):
            words = ("edge", "--map", self.folder / "feeds.toml", "--name", node, "--out", self.folder / node)
            more = ("--cloud", f"cloud1={host}:{port}", "--governance", self.governance(node))
            self.edges[node] = forked.Popen(
                htfi(*words, *more, "--insecure-loopback", "--plain", "--no-report", "--outputs", "jsonl"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
            self.stage.processes.append(self.edges[node])

    def feed(self, num: int = 1) -> None:
        """Bars of further days to both edges."""
        for _ in range(num):
            at = time.strftime("%Y-%m-%dT21:00:00Z", time.gmtime(1_262_304_000 + 86_400 * self.day))
            bar = {
                "symbol": "AAA",
                "ts": at,
                "interval": "1d",
                "open": 100,
                "high": 101,
                "low": 99,
                "close": 100.5,
            }
            self.day += 1
            for edge in self.edges.values():
                assert edge.stdin is not None
                edge.stdin.write(json.dumps({**bar, "close": 100 + 0.3 * (self.day % 3)}).encode() + b"\n")
                edge.stdin.flush()

    def logged(self, node: str) -> list[GovernanceEntry]:
        return list(governance_entries(self.folder / node))

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        until_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < until_s, what
            self.feed()  # a run takes requests with its events
            time.sleep(0.1)

    def activate(self, node: str, *changes: str) -> str:
        """Draft, sign, propose and activate a bundle in a node's folder; its digest."""
        file = self.folder / f"{time.monotonic_ns()}.toml"
        settings = [word for change in changes for word in ("--set", change)]
        say("policy", "draft", self.governance(node), "--by", "ann", *settings, "--out", file)
        for officer in ("ann", "bob"):
            say("policy", "sign", file, "--key", self.folder / f"{officer}.key")
        say("policy", "propose", self.governance(node), file)
        said = say("policy", "activate", self.governance(node), file)
        return said.rpartition("digest ")[2].strip()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Stage(tmp_path) as stage:
        started = Desk(tmp_path, stage)
        yield started
        for edge in started.edges.values():
            edge.kill()
            edge.communicate()


@pytest.mark.slow
def test_bundles_and_stops_of_one_edge_hold_at_the_other(desk: Desk) -> None:
    desk.start()
    desk.wait_until(lambda: len(desk.logged("edge2")) > 0 or desk.day > 30, "the edges take bars")
    digest = desk.activate("edge1", "policy.max_band_width=0.4")

    def adopted(node: str) -> set[str]:
        return {one.digest for one in desk.logged(node) if isinstance(one, BundleAdopted)}

    desk.wait_until(lambda: digest in adopted("edge1") & adopted("edge2"), "both edges go by the bundle")

    say("stop", "--governance", desk.governance("edge1"), "--by", "Ann Lee", "--why", "drill")

    def stops(node: str) -> set[StopCause]:
        return {one.cause for one in desk.logged(node) if isinstance(one, Stopped)}

    desk.wait_until(lambda: bool(stops("edge2")), "the other edge is stopped")
    assert stops("edge2") == {StopCause.PEER}
    say("reenable", "--governance", desk.governance("edge2"), "--by", "Bo Chan", "--why", "over")
    desk.wait_until(
        lambda: any(isinstance(one, Reenabled) for one in desk.logged("edge1")), "the first edge goes on"
    )


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, which would end it before. Source: proc_pid_status(5)."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_the_signal_at_one_edge_stops_the_other(desk: Desk) -> None:
    desk.start()
    desk.wait_until(
        lambda: all((desk.folder / one / "ledger.db").exists() for one in ("edge1", "edge2")), "runs"
    )
    desk.wait_until(lambda: catches(desk.edges["edge1"].pid, signal.SIGUSR1), "edge1 takes the signal")
    desk.edges["edge1"].send_signal(signal.SIGUSR1)

    def stops(node: str) -> list[tuple[StopCause, str]]:
        return [(one.cause, one.request) for one in desk.logged(node) if isinstance(one, Stopped)]

    desk.wait_until(lambda: bool(stops("edge1")) and bool(stops("edge2")), "both edges are stopped")
    ((cause, request),) = stops("edge1")
    assert cause is StopCause.SIGNAL
    assert stops("edge2") == [(StopCause.PEER, request)]


def test_under_people_a_signed_request_at_one_edge_ends_the_stop_at_both(desk: Desk) -> None:
    pytest.importorskip("cedarpy")
    ann = create_signing_key(desk.folder / "cro.key", "example.com/cro")
    for node in NODES:
        people = f'[[people]]\nname = "Cy Roe"\nkey = "{ann}"\nroles = ["chief_risk_officer"]\n'
        (desk.governance(node) / "people.toml").write_text(people)
    desk.start()
    (desk.governance("cloud1") / "control").mkdir(exist_ok=True)
    (desk.governance("cloud1") / "control" / "STOP").touch()

    def has(node: str, kind: type[GovernanceEntry]) -> bool:
        return any(isinstance(one, kind) for one in desk.logged(node))

    desk.wait_until(lambda: has("edge1", Stopped) and has("edge2", Stopped), "both edges are stopped")
    signed = ("--governance", desk.governance("edge2"), "--key", desk.folder / "cro.key")
    say("reenable", *signed, "--why", "over")
    desk.wait_until(lambda: has("edge1", Reenabled) and has("edge2", Reenabled), "both edges go on")
    assert not has("edge1", ReenablingRefused)


def test_without_a_majority_nothing_is_activated_and_nothing_is_released(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "AGREE_S", 1.0)
    with pytest.raises(DependencyUnavailable, match="a majority of the nodes"):
        desk.activate("edge1", "policy.max_band_width=0.4")  # no node runs
    prices = desk.folder / "prices.csv"
    days = [f"2010-{month:02d}-{day:02d}" for month in (1, 2) for day in range(1, 28)]
    rows = [f"{day}T21:00:00Z,AAA,100,101,99,{100 + place % 3},9" for place, day in enumerate(days)]
    prices.write_text("\n".join(["ts,symbol,open,high,low,close,volume", *rows]))
    forked.run(
        [*forked.HTFI, "run", prices, "--out", desk.folder / "run", "--plain", "--no-report",
         "--governance", desk.governance("edge1"), "--outputs", "jsonl"],
        check=True, env=environment(), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    lines = [json.loads(line) for line in (desk.folder / "run" / "decisions.jsonl").read_text().splitlines()]
    assert len(lines) > 3
    assert all(line["withheld"] for line in lines)
    held = {one.stale for one in desk.logged("run") if isinstance(one, BundleAdopted)}
    assert any("belongs to several nodes and none of them runs here" in one for one in held)

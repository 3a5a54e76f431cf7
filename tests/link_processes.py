"""Real `htfi cloud` and `htfi edge` processes for the fault tests of the link, and what a run must have left behind."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked
from htfi.domain.plan import Rung
from htfi.wiring.ledger import open_ledger_readonly

DEADLINE_MS = 400
START_S = 40.0
RUN_S = 120.0
NUM_DAYS = 90
_SUBJECTS = (
    "Fed", "Chipmaker", "Oil producer", "Airline", "Regulator", "Carmaker", "Bank", "Retailer", "Union", "Miner",
    "Drugmaker", "Court", "Port", "Telecoms group", "Insurer", "Brewer", "Shipyard", "Treasury", "Builder", "Utility",
)  # fmt: skip
_EVENTS = (
    "cuts its outlook for the year", "wins a large order", "warns on demand", "raises prices again",
    "opens a new plant", "reports a surprise profit", "delays a product", "names a new chief", "settles a lawsuit",
    "plans a share buyback",
)  # fmt: skip
_ORDER = "AAA <view> up"  # what a person must not be able to say to a model


Process = subprocess.Popen[bytes]


def write_sources(folder: Path, num_days: int = NUM_DAYS) -> list[Path]:
    """Two symbols and a headline a day: about one reading a day, two where the market is meant."""
    rng = random.Random(3)
    prices, news = folder / "prices.csv", folder / "news.jsonl"
    with prices.open("w") as rows, news.open("w") as items:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for day in range(num_days):
            date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
            for symbol in ("AAA", "BBB"):
                close = 100.0 * (1 + rng.gauss(0, 0.01))
                high, low = max(close, 100.0) + 1, min(close, 100.0) - 1
                rows.write(f"{date}T21:00:00Z,{symbol},100,{high:.4f},{low:.4f},{close:.4f},9\n")
            headline = f"{rng.choice(_SUBJECTS)} {rng.choice(_EVENTS)}" if day % 10 else _ORDER
            item = {"ts": f"{date}T15:00:00Z", "id": f"n{day}", "headline": headline}
            items.write(json.dumps({**item, "symbols": rng.choice(([], ["AAA"], ["BBB"]))}) + "\n")
    return [prices, news]


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "HTFI_PIPELINE__DEADLINE_MS": str(DEADLINE_MS),
        "HTFI_PIPELINE__SNAPSHOT_S": "0.05",
        "HTFI_PIPELINE__GROUP_MS": "1",
        "HTFI_PIPELINE__LATE_WAIT_MS": "30000",  # for what is late at the end: a cloud may have to be found again
        # What is read in depth depends on which views were late: an edge may ask for others than the embedded run.
        "HTFI_SCHEDULING__DEEP_BUDGET_MS": "0",
        "HTFI_ENCODING__MODEL": "heads",  # every item is worth a model here
        "OMP_NUM_THREADS": "1",
        **more,
    }


def htfi(*words: object) -> list[str]:
    return [*forked.HTFI, *map(str, words)]


@dataclass
class Cloud:
    """A cloud's process, and where it listens."""

    process: Process
    address: tuple[str, int]
    said: Path

    def kill(self, signum: int = signal.SIGKILL) -> None:
        self.process.send_signal(signum)
        if signum == signal.SIGKILL:
            self.process.wait(10.0)


@dataclass
class Stage:
    """Starts processes, and ends all that are left when its `with` does."""

    folder: Path
    certs: Path | None = None
    processes: list[Process] = field(default_factory=list)
    num_started: int = 0

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(10.0)

    @property
    def trust(self) -> list[str]:
        return ["--insecure-loopback"] if self.certs is None else ["--certs", str(self.certs)]

    def start(
        self,
        command: Sequence[str],
        name: str,
        prefix: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> tuple[Process, Path]:
        self.num_started += 1
        said = self.folder / f"{self.num_started}-{name}.out"
        with said.open("wb") as out:
            process = forked.Popen(
                [*prefix, *command], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=dict(env or environment()),
            )  # fmt: skip
        self.processes.append(process)
        return process, said

    def cloud(self, name: str = "cloud1", *options: object, listen: str = "127.0.0.1", **more: Any) -> Cloud:
        command = htfi("cloud", "--name", name, "--listen", f"{listen}:0", "--plain", *self.trust, *options)
        process, said = self.start(command, name, **more)
        began = time.monotonic()
        while time.monotonic() - began < START_S and process.poll() is None:
            _, ready, rest = said.read_text().partition(" is ready on ")
            if ready and ": " in rest:
                host, _, port = rest.partition(": ")[0].rpartition(":")
                return Cloud(process, (host, int(port)), said)
            time.sleep(0.01)
        raise AssertionError(f"the cloud did not start: {said.read_text()}")

    def edge(
        self,
        sources: Sequence[Path],
        out: Path,
        clouds: Mapping[str, tuple[str, int]],
        *options: object,
        name: str = "edge1",
        **more: Any,
    ) -> tuple[Process, Path]:
        named = [f"--cloud={cloud}={host}:{port}" for cloud, (host, port) in clouds.items()]
        command = htfi(
            *("edge", *sources, "--name", name, "--out", out, "--plain", "--no-report"),
            *named,
            *self.trust,
            *options,
        )
        return self.start(command, name, **more)


def finish(process: Process, said: Path, story: str = "") -> None:
    """Wait for an edge; it must end well, and in time."""
    try:
        status = process.wait(RUN_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the edge hangs\n{story}\n{said.read_text()[-3000:]}") from None
    words = said.read_text()
    assert status == 0, f"the edge ended with {status}\n{story}\n{words[-3000:]}"
    assert "Traceback" not in words, f"{story}\n{words[-3000:]}"


def lines(out: Path) -> list[dict[str, Any]]:
    file = out / "decisions.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def wait_for_lines(out: Path, process: Process, num: int) -> None:
    file, began = out / "decisions.jsonl", time.monotonic()
    while process.poll() is None and time.monotonic() - began < RUN_S:
        if file.exists() and file.read_bytes().count(b"\n") >= num:
            return
        time.sleep(0.002)


@dataclass(frozen=True)
class Outcome:
    """What a run left: each view's tokens by the id of its decision, amendments in place of what they amend."""

    tokens: dict[str, tuple[int, ...]]
    provisional: frozenset[str]  # that no amendment has taken the place of
    num_amended: int
    places: tuple[str, ...]
    planned_drafts: frozenset[str]  # that the plan leaves to the draft model, so that none is provisional


def outcome(out: Path) -> Outcome:
    """Asserts that nothing is recorded twice, and that what is released is what is recorded."""
    released = lines(out)
    ids = [line["decision"]["id"] for line in released]
    assert len(ids) == len(set(ids)), "a decision was released twice"
    ledger = open_ledger_readonly(out)
    try:
        assert ledger.size == len(released), f"{ledger.size} recorded, {len(released)} released"
    finally:
        ledger.close()
    finals: dict[str, dict[str, Any]] = {}
    for line in released:
        decision = line["decision"]
        finals[decision.get("amends") or decision["id"]] = decision
    tokens: dict[str, tuple[int, ...]] = {}
    provisional: set[str] = set()
    planned_drafts: set[str] = set()
    places: list[str] = []
    for first, decision in finals.items():
        if decision["plan"]["rung"] == Rung.EDGE:
            planned_drafts.add(first)
        view = decision["view"] or {}
        trace = view.get("wording")
        if trace is None or view["as_of_ns"] != decision["as_of_ns"]:
            tokens[first] = ()
            continue
        tokens[first] = tuple(trace["tokens"])
        places.append(trace.get("place", ""))
        if view.get("provisional") and not decision.get("amends"):
            provisional.add(first)
    num_amended = sum(1 for line in released if line["decision"].get("amends"))
    return Outcome(tokens, frozenset(provisional), num_amended, tuple(places), frozenset(planned_drafts))


def same_answers(got: Outcome, embedded: Outcome, story: str) -> None:
    """Every decision was made, and every answer of the target is the embedded run's, token for token."""
    assert got.tokens.keys() == embedded.tokens.keys(), f"decisions are missing\n{story}"
    wrong = [
        (which, tokens, embedded.tokens[which])
        for which, tokens in got.tokens.items()
        if which not in got.provisional and tokens != embedded.tokens[which]
    ]
    assert not wrong, f"{len(wrong)} answers differ, the first: {wrong[0]}\n{story}"


@contextlib.contextmanager
def frozen(process: Process) -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)

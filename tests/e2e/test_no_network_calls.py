"""What leaves the machine: a command on files calls no other machine, and keeps files only where the docs say."""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

import onnxruntime
import pytest

from archives import unpack
from link_processes import write_sources
from network_calls import Outcome, Watched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tracer is of Linux")

SESSION = """
import sys, time, onnxruntime
from onnx import TensorProto, helper
names = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", names[:1], names[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
time.sleep(float(sys.argv[1]))
"""
ELSEWHERE = """
import socket, subprocess, sys, threading
def ask():
    try: socket.getaddrinfo("example.org", 443)
    except OSError: pass
if len(sys.argv) > 1: ask()
else:
    thread = threading.Thread(target=ask); thread.start(); thread.join()
    subprocess.run([sys.executable, "-c", "import socket; socket.socket().connect(('127.0.0.1', 9))"])
"""
_REPORTS = b"ORT_DISABLE_TELEMETRY" in (
    next(Path(onnxruntime.__file__).parent.glob("capi/onnxruntime_pybind11_state*")).read_bytes()
)
SOON_S = 120.0


def environment(home: Path, **more: str) -> dict[str, str]:
    """Of a person who has set nothing."""
    set_by_us = (
        "ORT_DISABLE_TELEMETRY",
        "HF_HUB_DISABLE_TELEMETRY",
        "HF_HUB_OFFLINE",
        "XDG_CACHE_HOME",
        "CI",
    )
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in set_by_us}
    return {**kept, "HOME": str(home), "TMPDIR": str(temporary), **more}


def files_of(home: Path) -> list[str]:
    return sorted(str(file.relative_to(home)) for file in home.rglob("*") if file.is_file())


def htfi(folder: Path, *words: str, env: Mapping[str, str]) -> Outcome:
    return Watched([sys.executable, "-m", "htfi", *words], env, folder).wait()


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """onnxruntime as it comes, imported by somebody else: it reports itself after some seconds."""
    home = tmp_path_factory.mktemp("reported")
    watched = Watched([sys.executable, "-c", SESSION, "100"], environment(home), home)
    yield watched
    watched.process.kill()
    watched.wait()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, telemetry: Watched, home: Path) -> Path:
    """A folder with a run over files, whose draft reads in a process of its own."""
    del telemetry  # begins meanwhile
    folder = tmp_path_factory.mktemp("work")
    write_sources(folder, num_days=62)
    unpack(
        Path(__file__).parents[1] / "data/ledgers/run-0.1.0.tar.xz", folder
    )  # with readings that one model alone wrote
    env = environment(home, HTFI_DECODING__STRATEGY="outcomes")
    ran = htfi(folder, "run", "prices.csv", "news.jsonl", "--out", "run1", "--plain", env=env)
    assert (ran.status, ran.attempts) == (0, []), ran.output
    return folder


@pytest.mark.parametrize("words", ["thread and child", "getaddrinfo"])
def test_the_tracer_sees_what_is_asked_of_other_machines(tmp_path: Path, words: str) -> None:
    asks = [sys.executable, "-c", ELSEWHERE, *([] if words.startswith("thread") else ["now"])]
    seen = Watched(asks, environment(tmp_path), tmp_path).wait().attempts
    assert len([one for one in seen if re.search(r"family (2|10)$", one)]) >= (
        2 if words != "getaddrinfo" else 1
    )


COMMANDS = (
    ("report", "run1"),
    ("scenario", "run1", "--headline", "Regulators open an inquiry into AAA", "--shock", "AAA -5%"),
    ("forecast", "prices.csv", "--symbol", "AAA"),
    ("ledger", "verify", "run1", "--recompute"),
    ("ledger", "replay", "run-0.1.0"),
    ("ledger", "audit", "run1"),
    ("quarantine", "list", "run1"),
    ("suspicion", "status", "run1"),
    ("models", "list"),
    ("models", "inspect", str(resources.files("htfi.models") / "mini-target")),
)


@pytest.mark.parametrize(
    "command",
    [*COMMANDS[:2], *(pytest.param(words, marks=pytest.mark.slow) for words in COMMANDS[2:])],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_command_on_files_calls_no_other_machine(work: Path, home: Path, command: tuple[str, ...]) -> None:
    done = htfi(work, *command, env=environment(home))
    assert (done.status, done.attempts) == (0, []), done.output


@pytest.mark.slow
def test_a_bench_calls_no_other_machine(work: Path, home: Path) -> None:
    done = htfi(work, "bench", "ledger", "--entries", "1000", env=environment(home))
    assert (done.status, done.attempts) == (0, []), done.output


def settled() -> bool:
    """Whether the shipped models were all there a minute before the tests began to run."""
    folder = Path(str(resources.files("htfi.models")))
    newest_s = max(file.stat().st_ctime for file in folder.rglob("*") if file.is_file())
    return time.time() - newest_s > 600.0


def test_all_that_is_kept_outside_the_run_is_written_graphs_and_digests(work: Path, home: Path) -> None:
    kept = files_of(home)
    digests = [name for name in kept if re.fullmatch(r"\.cache/htfi/digests/[0-9a-f]{64}\.json", name)]
    graphs = [name for name in kept if re.fullmatch(r"\.cache/htfi/[\w.]+\.graph", name)]
    assert graphs
    if settled():  # of models that were checked out a moment ago none are kept
        assert digests
    assert sorted(graphs + digests) == sorted(kept)
    assert [name for name in digests if re.search(r"[/\\]|htfi|mini", (home / name).read_text())] == []


@pytest.mark.skipif(not _REPORTS, reason="this onnxruntime has no telemetry")
def test_onnxruntime_keeps_no_device_id_where_htfi_was_imported(tmp_path: Path) -> None:
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    for home, code in ((plain, SESSION), (ours, "import htfi.domain.time\n" + SESSION)):
        done = Watched([sys.executable, "-c", code, "0"], environment(home), tmp_path).wait()
        assert done.status == 0, done.output
    assert any("deviceid" in name for name in files_of(plain))
    assert files_of(ours) == []


def test_who_imported_onnxruntime_first_is_told(tmp_path: Path) -> None:
    imports = [sys.executable, "-c", "import onnxruntime, htfi.wiring.models.loading"]
    done = Watched(imports, environment(tmp_path), tmp_path).wait()
    assert "RuntimeWarning: onnxruntime was imported before htfi" in done.output
    env = environment(tmp_path, ORT_DISABLE_TELEMETRY="1")
    assert Watched(imports, env, tmp_path).wait().output == ""


@pytest.mark.skipif(not _REPORTS, reason="this onnxruntime has no telemetry")
def test_the_tracer_sees_telemetry_that_is_on(telemetry: Watched) -> None:
    assert telemetry.has_attempted.wait(SOON_S)

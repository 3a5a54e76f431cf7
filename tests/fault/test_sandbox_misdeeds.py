"""What a confined process may not do: each misdeed is really tried, in bubblewrap's namespaces and without them.

The process runs a small program with the same lock as a candidate's. What bubblewrap alone can hold is tried where this
machine has it, and the reason is given where not.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import htfi
from htfi.adapters.sandbox import bubblewrap
from htfi.adapters.sandbox.process import ConfinedProcess
from htfi.governance.sandbox.results import Bounds, Enforcement, TrialEnding, TrialStopped
from htfi.wiring.sandbox.running import module_places, python_places

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")

PROGRAM = """
import os, struct, sys
sys.path[:] = {paths!r}
from pathlib import Path
from htfi.adapters.sandbox.locking import lock_process
def take():
    head = os.read(0, 4)
    return os.read(0, struct.unpack(">I", head)[0]).decode() if head else ""
answers = os.dup(1)
os.dup2(2, 1)
def give(words):
    os.write(answers, struct.pack(">I", len(words)) + words)
home = os.environ["LOCKS_FILES"]
readable = [Path(sys.prefix), Path(sys.base_prefix), Path("/usr/lib"), *map(Path, sys.path)]
readable = readable if home else None
take()
give(" ".join(lock_process(int(os.environ["CONTROL"]), 1 << 28, 30.0, readable, Path(home) if home else None)).encode())
while code := take():
    try:
        exec(code)
        give(b"done")
    except Exception as error:
        give(type(error).__name__.encode())
"""
BOUNDS = Bounds(memory_bytes=1 << 29, answer_s=20.0, wall_s=60.0)
HARMLESS = "sum(range(1_000))"
# Whatever else holds the process, the filter stops these.
FORBIDDEN = {
    "fork": "os.fork()",
    "program": "import subprocess; subprocess.run(['id'])",
    "exec": "os.execv('/bin/true', ['true'])",
    "thread": "import threading; threading.Thread(target=print).start()",
    "socket": "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
    "local socket": "import socket; socket.socketpair()",
    "write": "file = open('/tmp/filled', 'wb'); [file.write(bytes(1 << 20)) for _ in range(10_000)]",
    "make a folder": "os.mkdir('/tmp/made')",
    "remove": "os.unlink('/etc/hostname')",
    "kill": "os.kill(os.getppid(), 9)",
    "memory of others": "open('/proc/self/mem', 'r+b')",
    "memory file": "os.memfd_create('x')",
}
SECRETS = {
    "read a key": ("open(os.path.expanduser('~/.ssh/id_ed25519')).read()", TrialEnding.READ_SECRETS),
    "print the environment": ("print(dict(os.environ))", TrialEnding.PRINTED_SECRETS),
    "print in two parts": (
        "mark = os.environ['AWS_SECRET_ACCESS_KEY']; print(mark[:9], end=''); print(mark[9:])",
        TrialEnding.PRINTED_SECRETS,
    ),
    "print much, then a secret": (
        "print('x' * 300_000); print(os.environ['AWS_SECRET_ACCESS_KEY'])", TrialEnding.PRINTED_SECRETS,
    ),
}  # fmt: skip
OTHERS = {
    "sleep": ("import time; time.sleep(60)", TrialEnding.TIMED_OUT),
    "abort": ("os.abort()", TrialEnding.CRASHED),
    "exit": ("os._exit(0)", TrialEnding.CRASHED),
    "too long an answer": ("os.write(answers, b'\\xff\\xff\\xff\\xff')", TrialEnding.MALFORMED),
}


def wrapped_or_skip(is_wrapped: bool) -> None:
    if is_wrapped and (why := bubblewrap.why_not()):
        pytest.skip(why)


@contextmanager
def confined(is_wrapped: bool, bounds: Bounds = BOUNDS) -> Iterator[tuple[ConfinedProcess, Enforcement]]:
    """A process that is locked."""
    wrapped_or_skip(is_wrapped)
    program = PROGRAM.format(paths=[str(place) for place in module_places()])
    process = ConfinedProcess(program, python_places(), [], bounds, with_bubblewrap=is_wrapped)
    try:
        locks = process.exchange(b"lock", 30.0)
        assert isinstance(locks, bytes), (locks, process.printed)
        process.locked()
        yield process, process.enforcement(locks.decode().split())
    finally:
        process.close()


def stopped_by(code: str, is_wrapped: bool, limit_s: float = 20.0) -> TrialStopped:
    with confined(is_wrapped) as (process, _):
        assert process.exchange(HARMLESS.encode(), 20.0) == b"done"
        found = process.exchange(code.encode(), limit_s)
        if isinstance(found, bytes):  # what it printed may come a moment later
            found = process.exchange(HARMLESS.encode(), 20.0)
        assert isinstance(found, TrialStopped), found
        assert process.exchange(HARMLESS.encode(), 20.0) == found  # there is no way back
        return found


@pytest.mark.parametrize("is_wrapped", [True, False], ids=["bubblewrap", "alone"])
@pytest.mark.parametrize("name", ["fork", "socket", "write"])
def test_forbidden_call_ends_the_trial(name: str, is_wrapped: bool):
    assert stopped_by(FORBIDDEN[name], is_wrapped).ending is TrialEnding.FORBIDDEN_CALL


@pytest.mark.slow
@pytest.mark.parametrize("is_wrapped", [True, False], ids=["bubblewrap", "alone"])
@pytest.mark.parametrize("name", sorted(set(FORBIDDEN) - {"fork", "socket", "write"}))
def test_every_other_forbidden_call_ends_the_trial(name: str, is_wrapped: bool):
    assert stopped_by(FORBIDDEN[name], is_wrapped).ending is TrialEnding.FORBIDDEN_CALL


@pytest.mark.parametrize("is_wrapped", [True, False], ids=["bubblewrap", "alone"])
@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_bait(name: str, is_wrapped: bool):
    code, ending = SECRETS[name]
    assert stopped_by(code, is_wrapped).ending is ending


@pytest.mark.parametrize("name", OTHERS)
def test_other_misdeeds_end_the_trial(name: str):
    code, ending = OTHERS[name]
    assert stopped_by(code, not bubblewrap.why_not(), 1.0).ending is ending


def test_message_names_the_file_that_was_to_be_written():
    assert stopped_by("open('/tmp/of-mine', 'w')", False).detail.endswith("/tmp/of-mine")


def test_memory_is_bounded():
    with confined(not bubblewrap.why_not()) as (process, _):
        found = process.exchange(b"held = [bytearray(1 << 24) for _ in range(1_000)]", 30.0)
    assert found == b"MemoryError" or (
        isinstance(found, TrialStopped) and found.ending is TrialEnding.OUT_OF_MEMORY
    )


@pytest.mark.parametrize("is_wrapped", [True, False], ids=["bubblewrap", "alone"])
def test_real_home_cannot_be_read(is_wrapped: bool, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("real")
    with confined(is_wrapped) as (process, enforcement):
        if not is_wrapped and "files of the home folder cannot be read" not in enforcement.enforced:
            pytest.skip("this kernel has no Landlock")
        assert process.exchange(f"open({str(secret)!r}).read()".encode(), 20.0) in (
            b"FileNotFoundError",
            b"PermissionError",
        )


def test_baited_home_cannot_be_listed_without_namespaces():
    with confined(False) as (process, enforcement):
        if "files of the home folder cannot be read" not in enforcement.enforced:
            pytest.skip("this kernel has no Landlock")
        for folder in ("~", "~/.ssh"):
            asked = f"os.listdir(os.path.expanduser({folder!r}))"
            assert process.exchange(asked.encode(), 20.0) == b"PermissionError"


def test_environment_of_this_process_is_not_passed_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_SECRET", "real")
    with confined(not bubblewrap.why_not()) as (process, _):
        assert process.exchange(b"os.environ['MY_SECRET']", 20.0) == b"KeyError"


def test_what_cannot_be_enforced_is_said():
    with confined(False) as (_, enforcement):
        assert "no namespaces: bubblewrap is switched off" in enforcement.not_enforced
        assert not set(enforcement.enforced) & set(enforcement.not_enforced)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with confined(False) as (process, _):
        assert process.exchange(HARMLESS.encode(), 20.0) == b"done"
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_no_control_group_is_left_behind():
    with confined(not bubblewrap.why_not()) as (process, _):
        files = [Path(file) for file in process.control_files]
        assert all(file.exists() for file in files)
    assert not any(file.exists() for file in files)


def test_program_that_never_answers_is_given_up():
    process = ConfinedProcess(
        "import time; time.sleep(60)", python_places(), [], BOUNDS, with_bubblewrap=False
    )
    try:
        found = process.exchange(b"x" * (1 << 20), 0.5)  # more than a pipe holds
        assert isinstance(found, TrialStopped)
        assert found.ending is TrialEnding.TIMED_OUT
    finally:
        process.close()


def test_package_lies_where_the_process_can_read_it():
    assert Path(htfi.__file__).parent.parent in module_places()

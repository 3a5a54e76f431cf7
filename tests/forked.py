"""Processes of `htfi` for tests, forked from one that has imported what they need: most of a start is its imports.

`Popen` and `run` are those of `subprocess`, and start as those do whatever is not `python -m htfi …`, or is asked for
with what a fork cannot give. What is forked is a child of the test like any other, with a pid, pipes, an environment
and a folder of its own; it is signalled, killed and waited for as such. What differs from a start: modules are already
imported, and hashes of strings are alike in all of one worker's children.
"""

import atexit
import ctypes
import fcntl
import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

HTFI = (sys.executable, "-m", "htfi")
_SET_CHILD_SUBREAPER = 36  # of prctl(2): who has lost its parent becomes a child of this process
_MAX_ORDER_BYTES = 1 << 17
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# The rest is known once a child has imported it.
_AS_IT_BEGINS = {
    "serve": ("htfi.apps.service.app", "htfi.apps.service.server"),
    "mcp": ("htfi.apps.mcp.server",),
}


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`; `python -m htfi …` is forked."""

    def _execute_child(
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: bool, pass_fds: Any, cwd: Any, env: Any,
        startupinfo: Any, creationflags: Any, shell: bool, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
        errread: int, errwrite: int, *more: Any,
    ) -> None:  # fmt: skip
        words = [] if isinstance(args, (str, bytes)) else [os.fspath(word) for word in args]
        environment = dict(os.environ if env is None else env)
        *_, own_session, _ = more
        if (
            words[:3] != [*HTFI]
            or executable
            or preexec_fn
            or pass_fds
            or shell
            or not _starts_alike(environment)
        ):
            super()._execute_child(
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *more,
            )  # fmt: skip
            return
        order = {
            "words": words[3:],
            "environment": environment,
            "folder": os.fspath(cwd or os.getcwd()),  # noqa: PTH109
            "own_session": bool(own_session),
        }
        streams = [
            given if given >= 0 else own for given, own in ((p2cread, 0), (c2pwrite, 1), (errwrite, 2))
        ]
        self.pid = _forking().start(order, streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


def run(
    command: Sequence[Any],
    *,
    input: Any = None,  # noqa: A002 (its name in subprocess)
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` with `Popen` above."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen(command, **options) as process:
        try:
            said, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, said, errors)
    if check:
        done.check_returncode()
    return done


def _starts_alike(environment: dict[str, str]) -> bool:
    """Whether nothing that Python reads as it starts is asked to be otherwise than here."""
    named = {name for name in (*environment, *os.environ) if name.startswith(("PYTHON", "LD_"))}
    return all(environment.get(name) == os.environ.get(name) for name in named)


class _Forking:
    """The process that has imported everything, as the test sees it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._prctl = ctypes.CDLL(None).prctl
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for side in (self._orders, theirs):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_ORDER_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env=os.environ | _ONE_THREAD,
            )  # fmt: skip
        self.pid = self._process.pid
        atexit.register(self.end)

    def start(self, order: dict[str, Any], streams: list[int]) -> int:
        """The pid of a new child of this process."""
        with self._lock:
            self._prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._orders, [json.dumps(order).encode()], streams)
                answer = self._orders.recv(_MAX_ORDER_BYTES)
            finally:
                self._prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        assert answer, "the process that forks has ended: a test killed it"
        return int(answer)

    def end(self) -> None:
        self._orders.close()
        self._process.wait()


def started() -> list[int]:
    """The process that forks, where there is one: a child of this process of which no test knows."""
    return [_forking().pid] if _forking.cache_info().currsize else []


@cache
def _forking() -> _Forking:
    return _Forking()


def _serve(orders: socket.socket) -> None:
    """Fork a child for each order until there is nobody left to give one; returns in children alone."""
    told, telling = os.pipe()
    for end in (told, telling):
        os.set_blocking(end, False)
    fcntl.fcntl(telling, fcntl.F_SETPIPE_SZ, _MAX_ORDER_BYTES)
    while True:
        text, streams, _, _ = socket.recv_fds(orders, _MAX_ORDER_BYTES, 3)
        if not text:
            os._exit(0)
        order = json.loads(text)
        _import_all([*_modules_of(order["words"]), *_told(told)])
        reads, writes = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                for descriptor in (reads, told):
                    os.close(descriptor)
                orders.close()
                _become(order, streams)
                os.write(writes, str(os.getpid()).encode())
                os.close(writes)
                _tell_imports(telling)
                return
            os._exit(0)  # so that the child becomes one of the test
        os.waitpid(between, 0)
        os.close(writes)
        orders.send(os.read(reads, 32))
        for descriptor in (reads, *streams):
            os.close(descriptor)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """What a start would give a process."""
    if order["own_session"]:
        os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
    for stream in streams:
        os.close(stream)
    sys.argv = ["htfi", *order["words"]]


def _tell_imports(telling: int) -> None:
    """Tell what else this child imports, as it does, since it may be killed: those after it need not."""

    def tell(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            with suppress(OSError):
                os.write(telling, f"{arguments[0]}\n".encode())

    sys.addaudithook(tell)


def _modules_of(words: list[str]) -> list[str]:
    """The module of a command, and what it imports as it begins."""
    commands: dict[str, tuple[str, str]] = import_module("htfi.apps.cli.main").COMMANDS
    name = words[0] if words else ""
    return [commands.get(name, ("htfi", ""))[0].partition(":")[0], *_AS_IT_BEGINS.get(name, ())]


def _told(told: int) -> list[str]:
    """What children have imported by now."""
    text = b""
    with suppress(BlockingIOError):
        while True:
            text += os.read(told, _MAX_ORDER_BYTES)
    return text.decode().split()


def _import_all(names: list[str]) -> None:
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        with suppress(Exception):
            import_module(name)
    if missing:
        gc.freeze()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("htfi", run_name="__main__", alter_sys=True)

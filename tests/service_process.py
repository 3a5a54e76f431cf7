"""`htfi serve` as a process of its own, for tests: started on a free port, asked over real sockets, ended or killed."""

import signal
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from types import TracebackType

import httpx

import forked

HTFI = forked.HTFI
_START_S = 30.0


class ServiceProcess:
    """Serves a run's folder until the end of the `with` block."""

    def __init__(
        self,
        *arguments: str,
        port: int = 0,
        program: Sequence[str] = HTFI,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        command = [*program, "serve", *arguments, "--listen", f"127.0.0.1:{port}"]
        self.process = forked.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        if "://" not in self.said:
            self.process.kill()
            _, errors = self.process.communicate()
            raise AssertionError(f"the service did not start: {errors}")
        self.url = self.said.split()[1]
        self.port = int(self.url.rpartition(":")[2])
        self.client = httpx.Client(base_url=self.url, timeout=30.0, verify=tls or True)

    def wait_for(self, num_entries: int) -> None:
        """Until the service has read so many entries."""
        end = time.monotonic() + _START_S
        while self.client.get("/v1/health").json()["num_entries"] < num_entries:
            assert time.monotonic() < end, "the service has not read the record"
            time.sleep(0.01)

    def events(self, first: int, num: int, headers: dict[str, str] | None = None) -> list[tuple[str, str]]:
        """The ids and data of the next events of the stream."""
        found: list[tuple[str, str]] = []
        with self.client.stream("GET", "/v1/stream", params={"from": first}, headers=headers) as answer:
            for name, text in _fields(answer.iter_lines()):
                if name == "id":
                    found.append((text, ""))
                elif name == "data":
                    found[-1] = (found[-1][0], text)
                    if len(found) == num:
                        break
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        self.process.send_signal(number)
        self.process.communicate(timeout=30.0)
        return self.process.returncode

    def __enter__(self) -> "ServiceProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def _fields(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, text = line.partition(": ")
        if colon and name:
            yield name, text

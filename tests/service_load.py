"""Clients of a service for tests of what operators do meanwhile: they read, stream and post over real sockets."""

import threading
from collections.abc import Callable

import httpx

from service_process import ServiceProcess
from tenant_service import bearer


class ServiceLoad:
    """Clients that read, stream and post until the end of the block."""

    def __init__(self, served: ServiceProcess, key: str, *, posts: bool = True) -> None:
        self.url, self.key = served.url, key
        self.num_answers = {"read": 0, "stream": 0, "post": 0}
        self._posts = posts
        self.failed: list[str] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=one) for one in self._clients()]

    def _clients(self) -> list[Callable[[], None]]:
        return [self._read, self._stream, *([self._post] if self._posts else [])]

    def wait(self) -> None:
        """Until each client has had answers since."""
        before = dict(self.num_answers)
        names = ("read", "post") if self._posts else ("read",)  # a stream may be silent
        for _ in range(3000):
            if self.num_answers["stream"] and all(self.num_answers[one] > before[one] for one in names):
                return
            self._ended.wait(0.01)
        raise AssertionError(f"the clients got no answers: {self.failed}")

    def _repeat(self, name: str, ask: Callable[[httpx.Client], httpx.Response]) -> None:
        with httpx.Client(base_url=self.url, headers=bearer(self.key), timeout=30.0) as client:
            while not self._ended.wait(0.01):
                answer = ask(client)
                self.num_answers[name] += 1
                if answer.status_code not in (200, 202):
                    self.failed.append(f"{name}: {answer.status_code} {answer.text}")

    def _read(self) -> None:
        self._repeat("read", lambda client: client.get("/v1/forecasts"))

    def _post(self) -> None:
        def post(client: httpx.Client) -> httpx.Response:
            number = self.num_answers["post"]
            item = {"id": f"n{number}", "headline": f"ACME opens plant number {number}", "symbols": ["ACME"]}
            return client.post(
                "/v1/news", json={"items": [item]}, headers={"Idempotency-Key": f"post-{number}"}
            )

        self._repeat("post", post)

    def _stream(self) -> None:
        """From the start, and after each silence from the next index on."""
        after = 0
        with httpx.Client(
            base_url=self.url, headers=bearer(self.key), timeout=httpx.Timeout(30.0, read=1.0)
        ) as client:
            while not self._ended.is_set():
                try:
                    with client.stream("GET", "/v1/stream", params={"from": after}) as answer:
                        for line in answer.iter_lines():
                            if line.startswith("data"):
                                self.num_answers["stream"] += 1
                                after += 1
                            if self._ended.is_set():
                                return
                except httpx.ReadTimeout:
                    continue

    def __enter__(self) -> "ServiceLoad":
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for one in self._threads:
            one.join()

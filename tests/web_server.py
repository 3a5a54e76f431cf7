"""A real web server on a free port whose answers a test writes, and which notes what it was asked."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Handle = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Reply:
    """`etag` and `modified` are compared as a server does; a match is answered with 304."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    etag: str = ""
    modified: str = ""
    state_length: bool = True


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    at_s: float
    status: int


class Site:
    """What is served under each path: a reply, or a list of them of which the last stays, or a function."""

    def __init__(self) -> None:
        self.pages: dict[str, Reply | list[Reply] | Handle] = {}
        self.asked: list[Asked] = []
        self.url = ""
        self.port = 0

    def put(self, path: str, body: bytes, **more: Any) -> None:
        self.pages[path] = Reply(body, **more)

    def num_asked(self, path: str) -> int:
        return sum(asked.path == path for asked in self.asked)

    def wait_for(self, path: str, count: int, seconds: float = 10.0) -> None:
        """Raises: AssertionError, where the path is not asked so often in time."""
        until_s = time.monotonic() + seconds
        while self.num_asked(path) < count:
            assert time.monotonic() < until_s, f"{path} was asked {self.num_asked(path)} times, not {count}"
            time.sleep(0.01)


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            page = site.pages.get(self.path, Reply(b"not here", status=404))
            if callable(page):
                site.asked.append(Asked(self.path, dict(self.headers), time.monotonic(), 0))
                self.close_connection = True
                with suppress(OSError):
                    page(self)
                return
            if isinstance(page, list):
                page, rest = page[0], page[1:]
                if rest:
                    site.pages[self.path] = rest
            same = (page.etag and self.headers.get("If-None-Match") == page.etag) or (
                not page.etag and page.modified and self.headers.get("If-Modified-Since") == page.modified
            )
            status = 304 if same else page.status
            site.asked.append(Asked(self.path, dict(self.headers), time.monotonic(), status))
            with suppress(OSError):
                self.send_response(status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                if page.etag:
                    self.send_header("ETag", page.etag)
                if page.modified:
                    self.send_header("Last-Modified", page.modified)
                if page.state_length and status != 304:
                    self.send_header("Content-Length", str(len(page.body)))
                else:
                    self.close_connection = not page.state_length
                self.end_headers()
                if status != 304:
                    self.wfile.write(page.body)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None: ...  # a client may leave whenever it likes

    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    site.port = server.server_address[1]
    site.url = f"http://127.0.0.1:{site.port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

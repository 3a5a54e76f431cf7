"""A real chat server on a free loopback port, answering each call as its script says."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[["Call"], None]


@dataclass
class Call:
    """One request as it came, and the ways to answer it."""

    handler: BaseHTTPRequestHandler
    number: int
    body: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.handler.headers.items()}

    @property
    def schema(self) -> dict[str, Any]:
        return self.body["response_format"]["json_schema"]["schema"]

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("Content-Length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def answer(self, content: Any, usage: Any = None, **message: Any) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        reply = {
            "choices": [
                {"message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
            ],
            "usage": usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
        self.send(200, json.dumps(reply).encode(), Content_Type="application/json")

    def filled(self, words: str = "profit beats what was expected") -> dict[str, str]:
        """An answer in the form: the last option of every choice."""
        fields = self.schema["properties"]
        return {name: field["enum"][-1] if "enum" in field else words for name, field in fields.items()}

    def reset(self) -> None:
        """Break the connection at once, without a farewell."""
        connection = self.handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        socket.close(connection.detach())  # closing the object would wait for the files made of it


@dataclass
class ChatServer:
    """Where it listens, and what it was asked."""

    script: Script
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    num_open: int = 0
    most_open: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the test."""
        self.stopping.wait(seconds)


@contextmanager
def chat_server(script: Script | list[Script], tls: ssl.SSLContext | None = None) -> Iterator[ChatServer]:
    """`script` answers every call; a list answers one each, its last the rest."""
    scripts = script if isinstance(script, list) else [script]
    server = ChatServer(lambda call: scripts[min(call.number, len(scripts) - 1)](call))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                call = Call(self, len(server.calls), {**body, "path": self.path})
                server.calls.append(call)
                server.num_open += 1
                server.most_open = max(server.most_open, server.num_open)
            try:
                server.script(call)
            except (ConnectionError, ValueError, OSError):
                self.close_connection = True
            finally:
                with server.lock:
                    server.num_open -= 1

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the library's name
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def shutdown_request(self, request: Any) -> None:
            try:
                super().shutdown_request(request)
            except OSError:
                request.close()

    listener = Listener(("127.0.0.1", 0), Handler)
    if tls:
        listener.socket = tls.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        listener.shutdown()
        thread.join()
        listener.server_close()


def drip(call: Call, server_pause: Callable[[float], None], seconds: float = 0.05) -> None:
    """Headers at once, then a byte now and then, for ever."""
    call.handler.send_response(200)
    call.handler.send_header("Content-Length", "100000")
    call.handler.end_headers()
    began = time.monotonic()
    while time.monotonic() - began < 30:
        call.handler.wfile.write(b" ")
        call.handler.wfile.flush()
        server_pause(seconds)

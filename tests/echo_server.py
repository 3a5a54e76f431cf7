"""A TCP server on a free port that sends back what it gets, for tests of links. It ends with its `with`."""

import contextlib
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def echo_server(host: str = "127.0.0.1") -> Iterator[tuple[str, int]]:
    listening = socket.create_server((host, 0))
    open_ones: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def echo(one: socket.socket) -> None:
        with one, contextlib.suppress(OSError):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := one.recv(1 << 16):
                one.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listening.accept()
                open_ones.append(one)
                threads.append(threading.Thread(target=echo, args=(one,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listening.getsockname()[:2]
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join(5.0)
        for one in open_ones:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5.0)

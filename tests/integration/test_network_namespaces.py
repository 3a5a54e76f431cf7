"""Namespaces join over real addresses, fall silent when they are cut, and leave nothing behind."""

import errno
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from network_namespaces import Machine, can_delay, network_namespaces, skip_unless_possible

ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 0)) as s:
    print(s.getsockname()[1], flush=True)
    while True:
        one, peer = s.accept()
        with one:
            while data := one.recv(100):
                one.sendall(peer[0].encode() + b" " + data)
"""
# one line of answer for each line of input: what came back, or what kept it from coming
ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3.0) as s:
    for line in sys.stdin:
        s.settimeout(float(line))
        try:
            s.sendall(b"x")
            print(s.recv(100).decode(), flush=True)
        except OSError as error:
            print(type(error).__name__, flush=True)
"""


@pytest.fixture
def machines() -> Iterator[list[Machine]]:
    skip_unless_possible()
    with network_namespaces(3) as made:
        yield made


def read_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def test_tcp_works_across_and_a_cut_link_is_silent_until_it_is_mended(machines: list[Machine]) -> None:
    server, client, _ = machines
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with server.start([sys.executable, "-c", ECHO, server.address], **pipes) as serving:
        port = read_line(serving)
        with client.start([sys.executable, "-c", ASK, server.address, port], **pipes) as asking:
            assert asking.stdin is not None

            def ask(timeout_s: float) -> str:
                asking.stdin.write(f"{timeout_s}\n".encode())  # pyright: ignore[reportOptionalMemberAccess]
                asking.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]
                return read_line(asking)

            assert ask(3.0) == f"{client.address} x"
            server.cut()
            assert ask(0.5) == "TimeoutError", "silence, not a reset"
            server.mend()
            assert ask(5.0).startswith(f"{client.address} x"), "TCP goes on where it was"
            asking.stdin.close()
        serving.kill()


def test_every_machine_reaches_every_other_and_the_host_has_no_part_in_it(machines: list[Machine]) -> None:
    knock = "import socket,sys;print(socket.socket().connect_ex((sys.argv[1], 9)))"
    for one in machines:
        for other in machines:
            answer = one.run([sys.executable, "-c", knock, other.address])
            assert answer.strip() == str(errno.ECONNREFUSED), "a refusal has come all the way"
    host = subprocess.run(["ip", "-4", "address"], capture_output=True, check=True).stdout.decode()
    assert machines[0].address not in host


def test_their_processes_and_names_end_with_them() -> None:
    skip_unless_possible()
    with network_namespaces(2) as machines:
        sleeper = machines[0].start(["sleep", "60"])
        time.sleep(0.1)
        assert sleeper.poll() is None
    assert sleeper.wait(5.0) == -9
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, check=True).stdout.decode()
    assert not any(machine.name in left or machine.switch in left for machine in machines)


def test_a_delay_is_felt_where_the_kernel_has_one(machines: list[Machine]) -> None:
    if not can_delay(machines[0]):
        pytest.skip("this kernel has no netem")
    machines[0].delay(50)
    spent = machines[1].run(
        ["python3", "-c", f"import socket,time;b=time.time();s=socket.socket();s.settimeout(3)\n"
         f"try: s.connect(('{machines[0].address}',9))\nexcept OSError: pass\nprint(time.time()-b)"]
    )  # fmt: skip
    assert float(spent) >= 0.05

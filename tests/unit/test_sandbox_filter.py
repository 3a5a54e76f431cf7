"""The system-call filter, run by an interpreter of its BPF program: nothing forbidden passes, reading does."""

import os
import struct

import pytest

from htfi.adapters.sandbox.seccomp import filter_program
from htfi.adapters.sandbox.syscalls import SystemCalls, system_calls

ALLOW, NOTIFY, KILL, ERRNO = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x00050000
READING = os.O_RDONLY | os.O_CLOEXEC
MACHINES = ("x86_64", "aarch64")


def run(program: bytes, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """What the program returns for a call: the instructions that linux/filter.h states, and no others."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = value = 0
    while True:
        code, jump_true, jump_false, k = lines[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, k)
            case 0x15:
                at += jump_true if value == k else jump_false
            case 0x45:
                at += jump_true if value & k else jump_false
            case 0x35:
                at += jump_true if value >= k else jump_false
            case 0x06:
                return k
            case _:
                raise AssertionError(f"instruction {code:#x}")


def calls_of(machine: str) -> SystemCalls:
    found = system_calls(machine)
    assert found is not None
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("reports", [True, False])
def test_every_forbidden_call_is_refused(machine: str, reports: bool):
    calls = calls_of(machine)
    program = filter_program(calls, reports=reports)
    assert {"clone", "clone3", "execve", "socket", "connect", "ptrace", "bpf"} <= set(calls.forbidden)
    found = {name: run(program, number, calls.audit_arch) for name, number in calls.forbidden.items()}
    assert set(found.values()) == {NOTIFY if reports else KILL}


@pytest.mark.parametrize("machine", MACHINES)
def test_files_are_opened_to_read_alone(machine: str):
    calls = calls_of(machine)
    program = filter_program(calls, reports=True)
    for number, argument in calls.open_flags.values():
        before = (0,) * argument
        assert run(program, number, calls.audit_arch, (*before, READING)) == ALLOW
        for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND):
            assert run(program, number, calls.audit_arch, (*before, READING | flag)) == NOTIFY
    assert run(program, calls.openat2, calls.audit_arch) & ~0xFFFF == ERRNO


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_and_the_other_numbers_are_killed(machine: str):
    calls = calls_of(machine)
    program = filter_program(calls, reports=True)
    assert run(program, 0, calls.audit_arch ^ 1) == KILL
    assert run(program, 0x40000000 + 39, calls.audit_arch) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_other_calls_pass(machine: str):
    calls = calls_of(machine)
    program = filter_program(calls, reports=True)
    taken = {*calls.forbidden.values(), *(number for number, _ in calls.open_flags.values()), calls.openat2}
    others = [number for number in range(400) if number not in taken]
    assert len(others) > 200
    assert {run(program, number, calls.audit_arch) for number in others} == {ALLOW}


def test_no_jump_is_longer_than_an_instruction_can_say():
    assert all(len(filter_program(calls_of(machine), reports=True)) // 8 < 4_096 for machine in MACHINES)


def test_names_of_calls_stand_in_messages():
    calls = calls_of("x86_64")
    assert calls.name_of(41) == "socket"
    assert calls.name_of(257) == "openat for writing"
    assert calls.name_of(4_000) == "number 4000"


def test_unknown_processor_has_no_table():
    assert system_calls("riscv64") is None

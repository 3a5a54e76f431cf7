"""Numbers of the Linux system calls that a confined process may not make, for x86-64 and AArch64.

Source: the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. Calls from 424 on
have one number everywhere.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435,
    "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447, "fchmodat2": 452,
}  # fmt: skip
_X86_64 = {
    "shmget": 29, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "bind": 49, "listen": 50, "socketpair": 53,
    "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "semget": 64, "msgget": 68, "truncate": 76,
    "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101, "syslog": 103, "setuid": 105,
    "setgid": 106, "setpgid": 109, "setsid": 112, "setreuid": 113, "setregid": 114, "setgroups": 116, "setresuid": 117,
    "setresgid": 119, "mknod": 133, "personality": 135, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165,
    "umount2": 166, "swapon": 167, "reboot": 169, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "tkill": 200, "mq_open": 240, "kexec_load": 246,
    "add_key": 248, "request_key": 249, "keyctl": 250, "mkdirat": 258, "mknodat": 259, "fchownat": 260,
    "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "unshare": 272,
    "fallocate": 285, "accept4": 288, "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313, "renameat2": 316,
    "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36,
    "linkat": 37, "renameat": 38, "umount2": 39, "mount": 40, "pivot_root": 41, "truncate": 45, "ftruncate": 46,
    "fallocate": 47, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "quotactl": 60,
    "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "syslog": 116, "ptrace": 117, "kill": 129, "tkill": 130, "reboot": 142, "setregid": 143, "setgid": 144,
    "setreuid": 145, "setuid": 146, "setresuid": 147, "setresgid": 149, "setpgid": 154, "setsid": 157,
    "setgroups": 159, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "socketpair": 199,
    "bind": 200, "listen": 201, "accept": 202, "connect": 203, "sendto": 206, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "execve": 221, "swapon": 224, "perf_event_open": 241, "accept4": 242,
    "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "finit_module": 273, "renameat2": 276, "memfd_create": 279, "bpf": 280, "execveat": 281,
    "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SystemCalls:
    """The calls of one processor: `forbidden` by name; `open_flags`, those that open a file, and which argument holds
    its flags."""

    audit_arch: int
    forbidden: Mapping[str, int]
    open_flags: Mapping[str, tuple[int, int]]
    openat2: int = 437

    def name_of(self, number: int) -> str:
        """The name of a forbidden call."""
        known = {one: name for name, one in self.forbidden.items()}
        known |= {one: f"{name} for writing" for name, (one, _) in self.open_flags.items()}
        return known.get(number, f"number {number}")


def system_calls(machine: str = "") -> SystemCalls | None:
    """Those of this processor, or of a named one; None for one that has no table here."""
    match machine or platform.machine():
        case "x86_64":
            opens = {"open": (2, 1), "openat": (257, 2)}
            return SystemCalls(_AUDIT_ARCH["x86_64"], _X86_64 | _EVERYWHERE, opens)
        case "aarch64":
            return SystemCalls(_AUDIT_ARCH["aarch64"], _AARCH64 | _EVERYWHERE, {"openat": (56, 2)})
        case _:
            return None

"""A disk that fills, a limit on file sizes, a read-only folder: one line, nothing half-written."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from htfi.wiring.ledger import open_ledger, open_ledger_readonly

ORIGIN = "htfi.example/disk"
PRELUDE = """
import json, os, sys
from pathlib import Path
from htfi.domain.errors import LedgerUnavailable
from htfi.wiring.ledger import open_ledger, open_ledger_readonly
folder = Path(sys.argv[1])

def fill(log):
    # Appends groups of ten until one fails; the number receipted, and the message.
    while True:
        try:
            log.append([b"%d:" % index + b"x" * 3000 for index in range(log.size, log.size + 10)])
        except LedgerUnavailable as error:
            return log.size, str(error)
"""
FILE_LIMIT = """
import resource
log = open_ledger(folder, origin="htfi.example/disk")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
num_receipted, message = fill(log)
again = fill(log)
log.close()
print(json.dumps({"num_receipted": num_receipted, "message": message, "again": again}))
"""
# In a mount namespace of its own: a file system of 2 MB that a filler nearly fills, and later frees.
FULL_DISK = """
import subprocess
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
filler = folder / "filler"
filler.write_bytes(b"0" * 1_000_000)
log = open_ledger(folder, origin="htfi.example/disk")
num_receipted, message = fill(log)
log.close()
view = open_ledger_readonly(folder)
verified = view.verify().size
view.close()
filler.unlink()
log = open_ledger(folder, origin="htfi.example/disk")
reopened = log.size
log.append([b"after"])
grown = log.verify().size
log.close()
print(json.dumps({"num_receipted": num_receipted, "message": message, "verified": verified,
                  "reopened": reopened, "grown": grown}))
"""
READ_ONLY = """
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    open_ledger(folder, origin="htfi.example/disk")
    message = None
except LedgerUnavailable as error:
    message = str(error)
view = open_ledger_readonly(folder)
print(json.dumps({"message": message, "verified": view.verify().size}))
"""


def run(script: str, folder: Path, *, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    command = [*prefix, sys.executable, "-c", PRELUDE + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_limit_on_file_sizes_stops_recording_and_loses_nothing(tmp_path: Path) -> None:
    said = run(FILE_LIMIT, tmp_path)
    assert 0 < said["num_receipted"] < 400
    assert said["message"].startswith(f"cannot write to {tmp_path / 'ledger.db'}: ")
    assert "\n" not in said["message"]
    # After a failed write the store stays shut until it is opened again.
    assert said["again"][0] == said["num_receipted"]
    assert "open it again" in said["again"][1]
    log = open_ledger(tmp_path, origin=ORIGIN)
    assert log.size == said["num_receipted"]
    log.append([b"after"])
    assert log.verify().size == said["num_receipted"] + 1
    log.close()


def test_full_disk_stops_recording_and_the_ledger_goes_on_once_there_is_room(tmp_path: Path) -> None:
    prefix = (
        ("unshare", "--mount") if os.getuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
    )
    trial = [*prefix, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(trial, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a small file system; the file-size limit is tested above")
    said = run(FULL_DISK, tmp_path, prefix=prefix)
    assert 0 < said["num_receipted"] < 400
    assert "the disk is full; free some space and start again" in said["message"]
    assert said["verified"] == said["reopened"] == said["num_receipted"]
    assert said["grown"] == said["num_receipted"] + 1


@pytest.fixture
def open_folder() -> Generator[Path]:
    """A folder that another user may enter, as pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_read_only_folder_can_be_verified_but_not_appended_to(open_folder: Path) -> None:
    log = open_ledger(open_folder, origin=ORIGIN)
    log.append([b"one", b"two"])
    log.close()
    for file in open_folder.iterdir():
        file.chmod(0o444)
    open_folder.chmod(0o555)
    said = run(READ_ONLY, open_folder)
    assert said["message"] == f"cannot write to {open_folder}: Permission denied"
    assert said["verified"] == 2


def test_reader_beside_a_ledger_that_failed_still_verifies(tmp_path: Path) -> None:
    run(FILE_LIMIT, tmp_path)
    view = open_ledger_readonly(tmp_path)
    assert view.verify().size == view.size > 0
    view.close()

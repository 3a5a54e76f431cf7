"""Floors: what the machine needs for the work that cannot be left out, measured in the same run as a figure.

A figure is never below its floor but by chance; how far it is above says what remains to be gained. Each floor's text
says what was measured. Times are in seconds.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

Row = dict[str, Any]

_PAGE_BYTES = 32_768  # as the ledger's database
_ROWS_PER_INSERT = 64  # likewise
_READ_BYTES = 1 << 20
_TILE_WIDTH = 256  # hashes of a tile: c2sp.org/tlog-tiles


@dataclass(frozen=True, slots=True)
class Floor:
    """`value` in the unit of the figure beside it; `what` was measured."""

    value: float
    what: str


def with_floor(row: Mapping[str, Any], figure: str, floor: Floor) -> Row:
    """The row with the floor of its cell `figure`: a time over its floor, a rate below what the floor allows."""
    value = row[figure]
    times = floor.value / value if figure.endswith("/s") else value / floor.value
    return {**row, "floor": floor.value, "× floor": times, "the floor is": f"{figure}: {floor.what}"}


def record_times(file: Path, groups: Sequence[Sequence[bytes]], *, durable: bool) -> list[float]:
    """Seconds to hash the bytes of each group at once, and to write its entries to a new database in a transaction."""
    times: list[float] = []
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        database.execute("CREATE TABLE entries (idx INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        start = 0
        for group in groups:
            began = time.perf_counter()
            sha256(b"".join(group)).digest()
            database.execute("BEGIN IMMEDIATE")
            for first in range(0, len(group), _ROWS_PER_INSERT):
                rows = enumerate(map(bytearray, group[first : first + _ROWS_PER_INSERT]), start + first)
                values = [value for row in rows for value in row]
                places = ",".join(["(?,?)"] * (len(values) // 2))
                database.execute(f"INSERT INTO entries VALUES {places}", values)
            database.execute("COMMIT")
            times.append(time.perf_counter() - began)
            start += len(group)
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()
    return times


def verify_s(file: Path, entries: Sequence[bytes], num: int) -> float:
    """Seconds to read a file, to hash the bytes of `num` of the entries, in turn, and to check one signature."""
    key = Ed25519PrivateKey.generate()
    signature, public = key.sign(b"checkpoint"), key.public_key()
    buffer = bytearray(_READ_BYTES)
    began = time.perf_counter()
    with file.open("rb", buffering=0) as source:
        while source.readinto(buffer):
            pass
    hashed = sha256()
    for index in range(num):
        hashed.update(entries[index % len(entries)])
    public.verify(signature, b"checkpoint")
    return time.perf_counter() - began


def tile_read_times(file: Path, indices: Sequence[int], num: int) -> list[float]:
    """Seconds to read the tile of each level above each entry, of the ledger of `num` entries in `file`."""
    widths = [_TILE_WIDTH]
    while widths[-1] < num:
        widths.append(widths[-1] * _TILE_WIDTH)
    times: list[float] = []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)) as database:
        for index in indices:
            began = time.perf_counter()
            for level, width in enumerate(widths):
                database.execute(
                    "SELECT hashes FROM tiles WHERE level = ? AND idx = ?", (level, index // width)
                ).fetchone()
            times.append(time.perf_counter() - began)
    return times


def copy_s(columns: Sequence[NDArray[Any]]) -> float:
    """Seconds to copy arrays in memory, into memory that is there."""
    buffers = [np.zeros_like(column) for column in columns]
    began = time.perf_counter()
    for column, buffer in zip(columns, buffers, strict=True):
        np.copyto(buffer, column)
    return time.perf_counter() - began


def lookup_s(texts: Sequence[str], values: Sequence[bytes]) -> float:
    """The median seconds to hash a text, to find its value in a table in memory and to copy it."""
    table = {
        sha256(text.encode()).digest(): bytearray(value) for text, value in zip(texts, values, strict=True)
    }

    def look_up(text: str) -> bytes:
        return bytes(table[sha256(text.encode()).digest()])

    return median(_timed(look_up, text) for text in texts)


def _timed(act: Callable[[str], object], text: str) -> float:
    began = time.perf_counter()
    act(text)
    return time.perf_counter() - began

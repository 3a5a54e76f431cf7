"""How the context cache is kept in an LMDB file: five tables, and what is read and written in one transaction.

Walks through a whole LMDB file, in a process of its own, which a damaged file may end. The store starts it.
"""

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import lmdb

TABLES = ("values", "heads", "about", "order", "forgotten")
MAX_FORGOTTEN = 65_536
MAX_ABOUT = 255  # names that one value may be about
_NUMBER_BYTES, _NAME_BYTES = 8, 16
_NAMES_OFFSET = 3 * _NUMBER_BYTES + 2  # where the names begin in a head
_ENTRY_OVERHEAD_BYTES = 400  # bytes that a value takes in the other tables
_PAGE_OVERHEAD = 1.6  # short pieces share pages, which are not full
_PIECE_BYTES = (
    1_900  # bytes that share a page with others: a longer one needs pages in a row, which a full file lacks
)
_NAMED = b"n"  # in `forgotten`: names under this byte, numbers in order under the next
_NUMBERED = b"t"
_COUNT = b"c"  # in `order`: bytes of all values, under this key; places begin with 'p'
_PLACE = b"p"


class LmdbLayout:
    """values: key and piece's number 2 → piece. heads: key → end in ns 8, place 8, size 8, pieces 2, then 16 for each
    name that it is about.
    about: a name's digest → keys. order: place → key, rising with use. forgotten: names with their number, and
    numbers with their name.
    """

    def __init__(self, environment: Any, max_value_bytes: int) -> None:
        """Raises: lmdb.Error."""
        self._max_bytes = max_value_bytes
        self._values, self._heads, self._about, self._order, self._forgotten = (
            environment.open_db(table.encode(), dupsort=table == "about") for table in TABLES
        )

    def find(self, txn: Any, key: bytes, about: Iterable[str], now_ns: int) -> bytes | None:
        head = txn.get(key, db=self._heads)
        if head is None or _int(head[:_NUMBER_BYTES]) <= now_ns:
            return None
        if any(txn.get(_NAMED + _digest(name), db=self._forgotten) is not None for name in about):
            return None
        return self._joined(txn, key, _int(head[3 * _NUMBER_BYTES : _NAMES_OFFSET]))

    def put(self, txn: Any, key: bytes, value: bytes, end_ns: int, about: Sequence[str]) -> None:
        num_pieces = -(-len(value) // _PIECE_BYTES)
        size = int(min(_PAGE_OVERHEAD * len(value), num_pieces * 4_200.0)) + _ENTRY_OVERHEAD_BYTES
        if num_pieces >= 2**16 or size > self._max_bytes // 4 or len(about) > MAX_ABOUT:
            return
        names = [_digest(name) for name in about]
        if any(txn.get(_NAMED + name, db=self._forgotten) is not None for name in names):
            return
        self.drop(txn, key)
        place = self._next_sequence(txn)
        head = (_bytes(end_ns), _bytes(place), _bytes(size), _piece(num_pieces), *names)
        txn.put(key, b"".join(head), db=self._heads)
        for piece in range(num_pieces):
            txn.put(
                key + _piece(piece), value[piece * _PIECE_BYTES : (piece + 1) * _PIECE_BYTES], db=self._values
            )
        txn.put(_PLACE + _bytes(place), key, db=self._order)
        for name in names:
            txn.put(name, key, db=self._about)
        self._count(txn, size)

    def touch(self, txn: Any, key: bytes) -> None:
        """Let it be the one used last."""
        head = txn.get(key, db=self._heads)
        if head is None:
            return
        place = _bytes(self._next_sequence(txn))
        txn.delete(_PLACE + head[_NUMBER_BYTES : 2 * _NUMBER_BYTES], db=self._order)
        txn.put(_PLACE + place, key, db=self._order)
        txn.put(key, head[:_NUMBER_BYTES] + place + head[2 * _NUMBER_BYTES :], db=self._heads)

    def make_space(self, txn: Any, share: float = 1.0) -> None:
        """Drop what was used longest ago until what is left takes at most this share of the bound."""
        while self.num_bytes(txn) > share * self._max_bytes:
            with txn.cursor(db=self._order) as cursor:
                if not cursor.set_range(_PLACE):
                    return
                place, key = cursor.item()
            if not self.drop(txn, key):
                txn.delete(place, db=self._order)

    def drop(self, txn: Any, key: bytes) -> bool:
        head = txn.get(key, db=self._heads)
        if head is None:
            return False
        for at in range(_NAMES_OFFSET, len(head), _NAME_BYTES):
            txn.delete(head[at : at + _NAME_BYTES], key, db=self._about)
        txn.delete(_PLACE + head[_NUMBER_BYTES : 2 * _NUMBER_BYTES], db=self._order)
        txn.delete(key, db=self._heads)
        for piece in range(_int(head[3 * _NUMBER_BYTES : _NAMES_OFFSET])):
            txn.delete(key + _piece(piece), db=self._values)
        self._count(txn, -_int(head[2 * _NUMBER_BYTES : 3 * _NUMBER_BYTES]))
        return True

    def forget(self, txn: Any, about: Iterable[str]) -> None:
        for name in about:
            digest = _digest(name)
            with txn.cursor(db=self._about) as cursor:
                keys = list(cursor.iternext_dup()) if cursor.set_key(digest) else []
            for key in keys:
                self.drop(txn, key)
            if txn.get(_NAMED + digest, db=self._forgotten) is None:
                number = self.last_forgotten(txn) + 1
                txn.put(_NAMED + digest, _bytes(number), db=self._forgotten)
                txn.put(_NUMBERED + _bytes(number), _encoded(name), db=self._forgotten)
                old = number - MAX_FORGOTTEN
                if old > 0 and (dropped := txn.pop(_NUMBERED + _bytes(old), db=self._forgotten)) is not None:
                    txn.delete(_NAMED + _digest(_decoded(dropped)), db=self._forgotten)

    def last_forgotten(self, txn: Any) -> int:
        with txn.cursor(db=self._forgotten) as cursor:
            return _int(cursor.key()[1:]) if cursor.last() and cursor.key()[:1] == _NUMBERED else 0

    def forgotten_since(self, txn: Any, number: int) -> list[str] | None:
        """The names from after this number on; None where some are not known any more."""
        names: list[str] = []
        with txn.cursor(db=self._forgotten) as cursor:
            if not cursor.set_range(_NUMBERED + _bytes(number + 1)):
                return names
            if _int(cursor.key()[1:]) != number + 1:
                return None
            names += [_decoded(name) for name in cursor.iternext(keys=False)]
        return names

    def num_bytes(self, txn: Any) -> int:
        """Of all values."""
        found = txn.get(_COUNT, db=self._order)
        return 0 if found is None else _int(found)

    def _joined(self, txn: Any, key: bytes, num_pieces: int) -> bytes | None:
        with txn.cursor(db=self._values) as cursor:
            if not cursor.set_key(key + _piece(0)):
                return b"" if num_pieces == 0 else None
            pieces = [cursor.value()]
            while len(pieces) < num_pieces and cursor.next():
                pieces.append(cursor.value())
        return b"".join(pieces)

    def _count(self, txn: Any, num_bytes: int) -> None:
        txn.put(_COUNT, _bytes(max(self.num_bytes(txn) + num_bytes, 0)), db=self._order)

    def _next_sequence(self, txn: Any) -> int:
        with txn.cursor(db=self._order) as cursor:
            return _int(cursor.key()[1:]) + 1 if cursor.last() and cursor.key()[:1] == _PLACE else 0


def _piece(number: int) -> bytes:
    return number.to_bytes(2, "big")


def _digest(name: str) -> bytes:
    return blake2b(_encoded(name), digest_size=_NAME_BYTES).digest()


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def _bytes(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _int(number: bytes) -> int:
    return int.from_bytes(number, "big")


_LMDB: Any = lmdb


def read_all_pages(folder: str) -> None:
    """Touch every page that a look-up may touch. Raises: lmdb.Error, ValueError; or the process dies."""
    environment = _LMDB.open(folder, readonly=True, lock=False, max_dbs=8, create=False)
    with Path(os.devnull).open("wb") as nowhere:
        environment.copyfd(nowhere.fileno(), compact=True)  # counts every page, the free ones too
    with environment.begin() as txn:
        tables = [bytes(name) for name in txn.cursor().iternext(values=False)]
    if not {table.encode() for table in TABLES} >= set(tables):
        raise ValueError("these tables are another program's")
    for name in tables:
        table = environment.open_db(name, create=False, dupsort=name == b"about")
        with environment.begin(db=table) as txn:
            found = 0
            for key, value in txn.cursor():
                found += len(key) + len(value)  # reading them copies them

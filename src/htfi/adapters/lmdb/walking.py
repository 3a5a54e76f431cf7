"""Walks through a whole LMDB file, in a process of its own, which a damaged file may end. The store starts it."""

import os
from pathlib import Path
from typing import Any

import lmdb

from htfi.adapters.lmdb.layout import TABLES

_ENV: Any = lmdb


def walk_file(folder: str) -> None:
    """Touch every page that a look-up may touch. Raises: lmdb.Error, ValueError; or the process dies."""
    environment = _ENV.open(folder, readonly=True, lock=False, max_dbs=8, create=False)
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

"""Prices by the name of a staged set or by path; every evaluation reads them here.

Staged sets are mended where they are known to be wrong: `Prices.notes` says how.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from htfi import sample
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import SystemClock
from htfi_eval.eval.price_grid import FIELDS, VOLUME, Prices, on_grid
from htfi_eval.eval.price_sets import SETS

if TYPE_CHECKING:
    from htfi.pipeline.intake.spec import SourceSpec

__all__ = ["NAMES", "STAGED", "Prices", "data_folder", "load_prices"]

STAGED = Path("../shared/data")
NAMES = tuple(SETS)


def data_folder(named: Path | None = None) -> Path | None:
    """The folder of staged data: `named`, or the one beside the project; None where there is none."""
    folder = named or STAGED
    return folder if (folder / "panels").is_dir() else None


def load_prices(name: str | Path, data: Path | None = None) -> Prices:
    """A staged panel by name (`NAMES`), 'sample' for the embedded one, or a file of bars by path.

    `data` is the staged folder, the one beside the project by default.
    Raises: InvalidInput, DependencyUnavailable, MissingExtra: one line that says what to do.
    """
    read = SETS.get(str(name))
    if read is not None:
        folder = data_folder(data)
        if folder is None:
            raise InvalidInput(
                f"no folder of staged data at {data or STAGED}: name one by --data, or a file of bars"
            )
        return read(folder)
    if str(name) == "sample":
        return _sample()
    return _own_file(Path(name))


def _sample() -> Prices:
    from htfi.wiring.feeds import resolve

    return _fed("sample", [spec for spec in resolve([], sample.MAPPING) if spec.kind == "bar"])


def _own_file(path: Path) -> Prices:
    from htfi.wiring.feeds import resolve

    specs = resolve([str(path)])
    if any(spec.live for spec in specs):
        raise InvalidInput(f"{path} is a live source: an evaluation needs a file")
    return _fed(path.name.split(".")[0], specs)


def _fed(name: str, specs: "Sequence[SourceSpec]") -> Prices:
    """Bars of any file that a feed can read. Several lengths of bar: the one with most bars is taken."""
    from htfi.wiring.feeds import open_feed
    from htfi.wiring.in_memory_run import MemoryQuarantine

    tray = MemoryQuarantine()
    with TemporaryDirectory() as inbox:
        feed = open_feed(specs, inbox=Path(inbox), quarantine=tray, clock=SystemClock())
        try:
            bars = [item for item in feed if isinstance(item, Bar)]
        finally:
            feed.close()
    if not bars:
        raise InvalidInput(
            f"{name} holds no bars: give a date, a symbol and open, high, low, close or close alone"
        )
    lengths = Counter(bar.interval for bar in bars)
    interval = max(sorted(lengths), key=lengths.__getitem__)
    taken = [bar for bar in bars if bar.interval == interval]
    notes: list[str] = []
    if len(taken) < len(bars):
        notes.append(f"{name}: {len(bars) - len(taken):,} bars of other lengths than {interval} are left out")
    if num_aside := sum(tray.counts().values()):
        notes.append(f"{name}: {num_aside:,} rows were set aside as unusable")
    fields = {key: np.array([getattr(bar, key) for bar in taken], np.float64) for key in (*FIELDS, VOLUME)}
    ends_ns = np.array([bar.end_ns for bar in taken], np.int64)
    available_ns = np.array([bar.available_at_ns for bar in taken], np.int64)
    symbols = np.array([bar.symbol for bar in taken])
    return on_grid(name, symbols, ends_ns, available_ns, fields, tuple(notes), interval)

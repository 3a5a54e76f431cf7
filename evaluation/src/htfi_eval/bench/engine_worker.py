"""One engine in a process of its own, on one core, asked over standard input. `htfi bench engine` starts it.

A request is a line of JSON, {"rows", "new", "repeats"}; the answer is {"ms"}, the median. The engine named 'machine'
answers {"read_bytes_per_s", "operations_per_s"} instead: what this core gives at best.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from htfi.domain.errors import HtfiError
from htfi_eval.bench.engine_peers import Engine, MissingEngineError, Pass, open_engine

MACHINE = "machine"
_NUM_FLOATS = 1 << 26  # 256 MB: past any cache
_GEMM_SIZE = 1024


def main() -> None:
    name, folder, cache, context, seed, core = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core)})
    try:
        engine = (
            None if name == MACHINE else open_engine(name, Path(folder), Path(cache), int(context), int(seed))
        )
    except (MissingEngineError, HtfiError) as missing:
        _send({"missing": str(missing)})
        return
    measure = machine_rates() if engine is None else None
    _send({"ready": name})
    passes: dict[tuple[int, int], tuple[Pass, Pass]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if engine is not None:
            _send({"ms": _timed(engine, passes, (asked["rows"], asked["new"]), asked["repeats"])})
        elif measure is not None:
            _send(measure())


def machine_rates() -> Callable[[], dict[str, float]]:
    """Bytes read a second, the better of a sum of products and a copy; float32 operations a second in a GEMM."""
    floats = np.ones(_NUM_FLOATS, np.float32)
    other = np.empty_like(floats)
    square = np.ones((_GEMM_SIZE, _GEMM_SIZE), np.float32)
    result = np.empty_like(square)

    def measure() -> dict[str, float]:
        read_s = _best_s(lambda: np.dot(floats, floats))
        copy_s = _best_s(lambda: np.copyto(other, floats))
        gemm_s = _best_s(lambda: np.matmul(square, square, out=result))
        rate = max(floats.nbytes / read_s, 2 * floats.nbytes / copy_s)
        return {"read_bytes_per_s": rate, "operations_per_s": 2 * _GEMM_SIZE**3 / gemm_s}

    return measure


def _timed(
    engine: Engine, passes: dict[tuple[int, int], tuple[Pass, Pass]], key: tuple[int, int], repeats: int
) -> float:
    if key not in passes:
        passes.clear()  # one past at a time: a large one would take memory from the others
        passes[key] = engine(*key)
        _run(*passes[key])
    return median(_run(*passes[key]) for _ in range(repeats)) * 1e3


def _run(go: Pass, undo: Pass) -> float:
    began = time.perf_counter()
    go()
    taken_s = time.perf_counter() - began
    undo()
    return taken_s


def _best_s(act: Callable[[], object]) -> float:
    act()
    times: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return min(times)


def _send(answer: object) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201  # the protocol's own channel


if __name__ == "__main__":
    main()

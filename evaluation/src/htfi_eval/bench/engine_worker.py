"""One engine in a process of its own, on one core; `htfi bench engine` starts one for each engine that it times.

A request is a line of JSON, {"rows", "new", "repeats"}; the answer is {"ms"}, the median. The engine named 'machine'
answers {"read_bytes_per_s", "operations_per_s"}: the core's best rates. Peers are imported late.
"""

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.ports import Floats, Ids
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.wiring.models.loading import export_onnx, load_network
from htfi_eval.bench.processes import pin_to_core, send_answer
from htfi_eval.commands import load_library

MASKED_SCORE = -1e30
Pass = Callable[[], object]
Engine = Callable[[int, int], tuple[Pass, Pass]]  # rows and new positions → a pass, and its undo

OUR_ENGINES = ("fp32", "int8", "int8-wide")
PEER_ENGINES = ("transformers", "openvino f32", "openvino bf16", "openvino int8", "llama-cpp-python")


def open_engine(name: str, folder: Path, cache: Path, context: int, seed: int) -> Engine:
    """Raises: MissingExtra, HtfiError."""
    if name in OUR_ENGINES:
        return _ours(name, folder, cache, context, seed)
    if name == "transformers":
        return _transformers(folder, context, seed)
    if name.startswith("openvino"):
        return _openvino(name.removeprefix("openvino "), folder, context, seed)
    return _llama_cpp()


def _ours(precision: str, folder: Path, cache: Path, context: int, seed: int) -> Engine:
    network = load_network(ModelFolder.open(folder), precision, cache)
    of = network.shape

    def prepare(num_rows: int, num_new: int) -> tuple[Pass, Pass]:
        ids, positions, mask = _new_tokens(num_rows, num_new, context, of.vocab_size, seed)
        shape = (of.num_layers, num_rows, of.num_kv_heads, context, of.head_dim)
        keys, values = _past(shape, seed)
        return lambda: network.forward(ids, positions, mask, keys, values), _no_undo

    return prepare


def _transformers(folder: Path, context: int, seed: int) -> Engine:
    torch, transformers = load_library("torch"), load_library("transformers")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def prepare(num_rows: int, num_new: int) -> tuple[Pass, Pass]:
        size = model.config.vocab_size
        past, _, _ = _new_tokens(num_rows, context, 0, size, seed + 1)
        ids, _, _ = _new_tokens(num_rows, num_new, context, size, seed)
        cache: Any = transformers.DynamicCache()
        new = torch.from_numpy(ids)
        with torch.inference_mode():
            model(torch.from_numpy(past), past_key_values=cache)

        def go() -> object:
            with torch.inference_mode():
                return model(new, past_key_values=cache)

        return go, lambda: cache.crop(-num_new)

    return prepare


def _openvino(hint: str, folder: Path, context: int, seed: int) -> Engine:
    """OpenVINO on the graph that we write: int8 with float32 around it, else float32 weights computed in `hint`."""
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # else importing openvino sends a report
    runtime = load_library("openvino")

    of = ModelFolder.open(folder)
    content = export_onnx(of, "int8" if hint == "int8" else "fp32")
    options = {
        "INFERENCE_PRECISION_HINT": "f32" if hint == "int8" else hint,
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
    }
    try:
        core = runtime.Core()
        request = core.compile_model(
            core.read_model(io.BytesIO(content)), "CPU", options
        ).create_infer_request()
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[-1]
        raise DependencyUnavailable(f"cannot load our graph: {reason}") from error
    shape = of.architecture

    def prepare(num_rows: int, num_new: int) -> tuple[Pass, Pass]:
        ids, positions, mask = _new_tokens(num_rows, num_new, context, shape.vocab_size, seed)
        keys, values = _past((shape.num_layers, num_rows, shape.num_kv_heads, context, shape.head_dim), seed)
        scored = np.arange(ids.size)
        feed: dict[str, Any] = {"ids": ids, "pos": positions, "mask": mask, "scored": scored}
        for layer in range(shape.num_layers):
            feed |= {f"k.{layer}": keys[layer], f"v.{layer}": values[layer]}

        def go() -> object:
            request.infer(feed, share_inputs=True, share_outputs=True)
            return request.get_tensor("logits").data

        return go, _no_undo

    return prepare


def _llama_cpp() -> Engine:
    """It reads only GGUF files with a tokenizer; these weights have neither."""
    load_library("llama_cpp")
    raise DependencyUnavailable("installed, but it reads only GGUF files")


def _new_tokens(num_rows: int, num_new: int, context: int, size: int, seed: int) -> tuple[Ids, Ids, Floats]:
    noise = np.random.Generator(np.random.PCG64(seed))
    ids = noise.integers(0, size, (num_rows, num_new))
    positions = np.tile(np.arange(context, context + num_new), (num_rows, 1))
    mask = np.zeros((num_rows, num_new, context + num_new), np.float32)
    mask[:, :, context:] = np.triu(np.full((num_new, num_new), MASKED_SCORE, np.float32), 1)
    return ids, positions, mask


def _past(shape: tuple[int, ...], seed: int) -> tuple[Floats, Floats]:
    noise = np.random.Generator(np.random.PCG64(seed))
    return noise.standard_normal(shape, dtype=np.float32), noise.standard_normal(shape, dtype=np.float32)


def _no_undo() -> None:
    return None


MACHINE = "machine"
_NUM_FLOATS = 1 << 26  # 256 MB: past any cache
_GEMM_SIZE = 1024


def main() -> None:
    name, folder, cache, context, seed, core = sys.argv[1:]
    pin_to_core(int(core))
    try:
        engine = (
            None if name == MACHINE else open_engine(name, Path(folder), Path(cache), int(context), int(seed))
        )
    except HtfiError as missing:
        send_answer({"missing": str(missing)})
        return
    measure = machine_rates() if engine is None else None
    send_answer({"ready": name})
    passes: dict[tuple[int, int], tuple[Pass, Pass]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if engine is not None:
            send_answer({"ms": _timed(engine, passes, (request["rows"], request["new"]), request["repeats"])})
        elif measure is not None:
            send_answer(measure())


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
        passes.clear()  # one past at a time, to save memory
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


if __name__ == "__main__":
    main()

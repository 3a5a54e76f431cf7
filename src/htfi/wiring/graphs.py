"""A network's graph as one file, weights inside, for other runtimes to read. The engine's bench asks for it."""

from htfi.adapters.onnx.written import Precision
from htfi.decoding.checkpoint.folder import ModelFolder


def portable_graph(folder: ModelFolder, precision: str) -> bytes:
    """An ONNX file of a causal network, under 2 GB. Raises: InvalidInput, ShapeMismatch."""
    from htfi.adapters.onnx.causal import write_causal
    from htfi.adapters.onnx.graph import whole_model

    written = write_causal(folder.architecture, folder.weights, Precision(precision), top=127)
    return whole_model(written, folder.weights).SerializeToString()

"""The embedded engine's networks: refusals in one line, shards, digests, precision, the graph cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from htfi.adapters.onnx.causal_graph import write_causal
from htfi.adapters.onnx.graph import MICROSOFT, GraphWriter
from htfi.adapters.onnx.network import OnnxNetwork
from htfi.adapters.onnx.saturation import adds_signed_exactly, exact_graph, with_unsigned_weights
from htfi.adapters.onnx.session import NO_WEIGHTS, OnnxSession, Precision
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.checkpoint.weights import INDEX_FILE
from htfi.decoding.ports import Floats, ForwardOutput
from htfi.domain.errors import InvalidInput, ShapeMismatch
from model_folders import bert_model, causal_model, save

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 50,
    "max_position_embeddings": 32,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(causal_model(CONFIG, 5), tmp_path_factory.mktemp("llama"))


def opened(folder: Path, cache: Path, precision: Precision = Precision.FP32) -> OnnxNetwork:
    return OnnxNetwork(ModelFolder.open(folder), precision, cache_folder=cache)


def passed(network: OnnxNetwork, **changes: Any) -> ForwardOutput:
    """Two rows, three new positions after four hidden ones."""
    arguments: dict[str, Any] = {
        "ids": np.arange(6).reshape(2, 3),
        "positions": np.tile(np.arange(3), (2, 1)),
        "mask": np.concatenate(
            [np.full((2, 3, 4), -1e30), np.tile(np.triu(np.full((3, 3), -1e30), 1), (2, 1, 1))], axis=2
        ).astype(np.float32),
        "keys": np.zeros((2, 2, 2, 4, 16), np.float32),
        "values": np.zeros((2, 2, 2, 4, 16), np.float32),
    }
    return network.forward(**(arguments | changes))


def logits(network: OnnxNetwork) -> Floats:
    return passed(network).logits


def test_pass_has_the_ports_shapes_and_the_network_says_its_own(folder: Path, tmp_path: Path) -> None:
    network = opened(folder, tmp_path)
    done = passed(network)
    assert done.logits.shape == (2, 3, 50)
    assert done.keys.shape == done.values.shape == (2, 2, 2, 3, 16)
    assert network.shape.max_positions == 32


def test_equal_digests_mean_equal_weights_and_precision(folder: Path, tmp_path: Path) -> None:
    digests = [opened(folder, tmp_path, precision).digest for precision in Precision]
    assert len(set(digests)) == len(Precision)
    assert opened(folder, tmp_path / "elsewhere").digest == digests[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ids": np.zeros(3, np.int64)}, "ids have shape"),
        ({"ids": np.zeros((2, 0), np.int64)}, "ids have shape"),
        ({"ids": np.zeros((2, 3), np.int32)}, "ids are int32"),
        ({"positions": np.zeros((2, 2), np.int64)}, "positions are"),
        ({"mask": np.zeros((2, 3, 3), np.float32)}, r"mask are float32 \[2, 3, 3\]"),
        ({"keys": np.zeros((2, 1, 2, 4, 16), np.float32)}, "keys are"),
        ({"keys": np.zeros((2, 2), np.float32)}, "mask are"),
        ({"values": np.zeros((2, 2, 2, 4, 16))}, "values are float64"),
        ({"values": np.zeros((2, 2, 2, 3, 16), np.float32)}, "values are"),
    ],
)
def test_misshapen_arrays_are_refused(folder: Path, tmp_path: Path, changes: Any, said: str) -> None:
    with pytest.raises(ShapeMismatch, match=said):
        passed(opened(folder, tmp_path), **changes)


def test_ids_and_positions_out_of_range_are_refused(folder: Path, tmp_path: Path) -> None:
    network = opened(folder, tmp_path)
    with pytest.raises(InvalidInput, match="0 to 49"):
        passed(network, ids=np.full((2, 3), 50))
    with pytest.raises(InvalidInput, match="0 to 31"):
        passed(network, positions=np.full((2, 3), 32))


def test_encoder_folder_is_refused_as_a_network(tmp_path: Path) -> None:
    config = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    save(bert_model(config | {"intermediate_size": 8}, 0), tmp_path)
    with pytest.raises(InvalidInput, match="bert encoder"):
        opened(tmp_path, tmp_path / "cache")


def test_config_and_weights_of_different_models_are_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"vocab_size": 50', '"vocab_size": 51'))
    with pytest.raises(ShapeMismatch, match="embed_tokens"):
        opened(tmp_path, tmp_path / "cache")


@pytest.mark.parametrize("precision", list(Precision))
def test_shards_give_the_same_logits_as_one_file(folder: Path, tmp_path: Path, precision: Precision) -> None:
    save(causal_model(CONFIG, 5), tmp_path, max_shard_size="30KB")
    assert (tmp_path / INDEX_FILE).exists()
    found = logits(opened(tmp_path, tmp_path / "cache", precision))
    assert np.array_equal(found, logits(opened(folder, tmp_path / "other", precision)))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_folders_are_read(tmp_path: Path, kind: str) -> None:
    torch = pytest.importorskip("torch")
    model = causal_model(CONFIG, 5).to(getattr(torch, kind))
    network = opened(save(model, tmp_path), tmp_path / "cache")
    ids = np.arange(6).reshape(2, 3)
    with torch.inference_mode():
        wanted = model.float()(torch.from_numpy(ids)).logits.numpy()
    assert np.abs(logits(network) - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_two_byte_activations_err_less_than_one(folder: Path, tmp_path: Path) -> None:
    found = {precision: logits(opened(folder, tmp_path, precision)) for precision in Precision}
    wanted = found[Precision.FP32]
    errors = [float(np.std(found[kind] - wanted)) for kind in (Precision.INT8_WIDE, Precision.INT8)]
    assert errors[0] < 0.8 * errors[1]


def test_cached_graph_gives_the_same_logits_without_writing_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = logits(opened(folder, tmp_path, Precision.INT8))
    monkeypatch.setattr("htfi.adapters.onnx.network._write", None)  # to call it now would fail
    assert np.array_equal(logits(opened(folder, tmp_path, Precision.INT8)), first)


def test_products_of_bytes_are_exact_in_the_form_that_a_processor_adds(tmp_path: Path) -> None:
    """The largest sums are those that some processors cut at 16 bits."""
    from onnx import TensorProto

    depth, size = 64, 16
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (depth, size)).astype(np.int8)
    weights[:, 0] = 127
    graph = GraphWriter(NO_WEIGHTS)
    one, zero = graph.constant(np.float32(1)), graph.constant(np.uint8(128))
    scale = graph.compute("scale", np.ones(size, np.float32))
    inputs = ["whole", graph.compute("weight", weights), one, scale, zero]
    graph.rename_last(graph.add("MatMulIntegerToFloat", inputs, domain=MICROSOFT), "sum")
    written = graph.finish({"whole": (TensorProto.UINT8, ["M", depth])}, ["sum"])
    whole = rng.integers(0, 256, (33, depth)).astype(np.uint8)
    whole[0] = 255
    wanted = (whole.astype(np.int64) - 128) @ weights.astype(np.int64)
    chosen = exact_graph("a", tmp_path, lambda: written)
    found = [
        OnnxSession(form, NO_WEIGHTS, 1).run(("sum",), {"whole": whole})[0]
        for form in (chosen, with_unsigned_weights(written))
    ]
    assert all(np.array_equal(one, wanted) for one in found)
    assert (chosen.content == written.content) is adds_signed_exactly(tmp_path)


@pytest.mark.parametrize("precision", [Precision.INT8, Precision.INT8_WIDE])
def test_unsigned_weights_give_the_same_bits(folder: Path, tmp_path: Path, precision: Precision) -> None:
    """What a processor without exact signed sums runs is what one with them runs."""
    of = ModelFolder.open(folder)
    network = opened(folder, tmp_path, precision)
    found = logits(network)
    unsigned = with_unsigned_weights(write_causal(of.architecture, of.weights, precision))
    network._session = OnnxSession(unsigned, of.weights, 1)
    assert np.array_equal(logits(network), found)


def test_weights_are_rounded_to_a_signed_byte(folder: Path, tmp_path: Path) -> None:
    of = ModelFolder.open(folder)
    written = write_causal(of.architecture, of.weights, Precision.INT8)
    whole = [array for array in written.computed.values() if array.dtype == np.int8]
    assert {int(np.abs(array.astype(int)).max()) for array in whole} == {127}
    wanted = logits(opened(folder, tmp_path))
    assert (
        np.abs(logits(opened(folder, tmp_path, Precision.INT8)) - wanted).max() < 0.1 * np.abs(wanted).max()
    )

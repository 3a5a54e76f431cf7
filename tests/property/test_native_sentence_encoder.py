"""The sentence encoder in C: the bits of the general engine, on every kind of processor, whatever stands beside."""

import os
import re
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnxruntime")
import onnxruntime

from htfi import models
from htfi.adapters.native import sentence_encoder as native
from htfi.adapters.native.sentence_encoder import NativeSentenceEncoder, serves
from htfi.adapters.native.written_graph import read_numbers
from htfi.adapters.onnx.sentence_encoder import OnnxSentenceEncoder, load_encoder, write_graph
from htfi.adapters.onnx.session import Precision, WrittenGraph
from htfi.decoding.checkpoint.folder import Architecture, ModelFolder, parse_architecture
from htfi.domain.errors import DependencyUnavailable, InvalidInput, ShapeMismatch
from model_folders import bert_model, save

pytestmark = pytest.mark.skipif(native.encoder_core is None, reason="the encoder in C was not compiled")

VOCAB = 50
SMALL: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": 160,
}
SHAPES: dict[str, dict[str, Any]] = {
    "heads of 32": {},
    "heads of 16": {"num_attention_heads": 4},
    "heads of 48": {"hidden_size": 192, "num_attention_heads": 4, "intermediate_size": 64},
    "tanh": {"hidden_act": "gelu_new", "num_hidden_layers": 1},
}
USUAL = [[row * 7 % VOCAB, 3, 9, row, 11, 40 - row] for row in range(12)]
LEVELS = (0, 1, 2)
# The general engine's norm was summed in another order before; its exponentials are on processors without AVX-512.
_VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
HAS_SAME_ORDER = (
    _VERSION >= (1, 31) and native.encoder_core is not None and native.encoder_core.best_level() == 2
)


def written(config: dict[str, Any], seed: int) -> tuple[Architecture, WrittenGraph]:
    with tempfile.TemporaryDirectory() as folder:
        save(bert_model(config, seed), Path(folder))
        opened = ModelFolder.open(Path(folder))
        graph = write_graph(opened, Precision.INT8, USUAL)
    copies = {name: array.copy() for name, array in graph.computed.items()}
    return opened.architecture, WrittenGraph(graph.content, graph.borrowed, copies)


@cache
def of_shape(shape: str) -> tuple[Architecture, WrittenGraph]:
    return written(SMALL | SHAPES[shape], list(SHAPES).index(shape))


def in_c(of: Architecture, graph: WrittenGraph, level: int) -> NativeSentenceEncoder:
    return NativeSentenceEncoder(of, graph.content, graph.computed, "", level=level)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.sampled_from(list(SHAPES)),
    st.lists(st.integers(1, 40) | st.sampled_from([16, 64, 65, 130]), min_size=1, max_size=6),
    st.integers(0, 99),
)
def test_every_level_gives_the_bits_of_the_general_engine(shape: str, lengths: list[int], seed: int) -> None:
    architecture, graph = of_shape(shape)
    noise = np.random.Generator(np.random.PCG64(seed))
    texts = [noise.integers(0, VOCAB, length).tolist() for length in lengths]
    general = OnnxSentenceEncoder(graph, architecture, "")
    wanted_points, wanted_states = general.read(texts)
    found = [in_c(architecture, graph, level).read(texts) for level in LEVELS]
    points, states = found[0]
    for other_points, other_states in found[1:]:
        assert np.array_equal(other_points, points)
        assert np.array_equal(np.concatenate(other_states), np.concatenate(states))
    assert [len(one) for one in states] == lengths
    # A number beside a half may become another byte where sums are made in another order.
    assert (points * wanted_points).sum(axis=1).min() > 0.999
    if HAS_SAME_ORDER:
        assert np.array_equal(points, wanted_points)
        assert np.array_equal(np.concatenate(states), np.concatenate(wanted_states))


def test_sums_at_the_ends_of_their_range_are_exact() -> None:
    """Weights and activations of the largest size: what pairs of products in 16 bits would cut."""
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 5)
    ends = {
        name: np.where(array < 0, -127, 127).astype(np.int8) if name.endswith("weight:int8") else array
        for name, array in graph.computed.items()
    }
    extreme = WrittenGraph(graph.content, graph.borrowed, ends)
    texts = [[3, 9, 11, 40], [7] * 9]
    found = [in_c(architecture, extreme, level).read(texts)[0] for level in LEVELS]
    assert np.isfinite(found[0]).all()
    assert np.array_equal(found[1], found[0])
    assert np.array_equal(found[2], found[0])
    wanted, _ = OnnxSentenceEncoder(extreme, architecture, "").read(texts)
    assert not HAS_SAME_ORDER or np.array_equal(found[0], wanted)


def test_company_order_and_threads_change_no_bit() -> None:
    architecture, graph = written(SMALL, 7)
    noise = np.random.Generator(np.random.PCG64(7))
    texts = [noise.integers(0, VOCAB, length).tolist() for length in (1, 30, 90, 2, 64, 159, 17, 33, 5)]
    encoder = in_c(architecture, graph, native.BEST_LEVEL)
    points, states = encoder.read(texts)
    alone = [encoder.read([text]) for text in texts]
    assert np.array_equal(np.concatenate([one for one, _ in alone]), points)
    assert np.array_equal(np.concatenate([of_text for _, (of_text,) in alone]), np.concatenate(states))
    shared_points, shared_states = encoder.read(texts, threads=3)
    assert np.array_equal(shared_points, points)
    assert np.array_equal(np.concatenate(shared_states), np.concatenate(states))
    assert np.array_equal(encoder.read(texts[::-1])[0], points[::-1])


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.sampled_from(list(SHAPES)),
    st.lists(st.integers(1, 40) | st.sampled_from([63, 64, 65, 130]), min_size=1, max_size=9),
    st.sampled_from([2, 3]),
    st.sampled_from(list(native.Wait)),
    st.integers(0, 99),
)
def test_shared_texts_have_the_bits_of_one_thread(
    shape: str, lengths: list[int], threads: int, wait: native.Wait, seed: int
) -> None:
    """Few passes, each shared by two threads, and many, each of one; waited for as a whole and in parts."""
    architecture, graph = of_shape(shape)
    noise = np.random.Generator(np.random.PCG64(seed))
    texts = [noise.integers(0, VOCAB, length).tolist() for length in lengths]
    encoder = in_c(architecture, graph, native.BEST_LEVEL)
    points, states = encoder.read(texts)
    for _ in range(8):
        encoder.rouse(threads)
        abandoned = encoder.start(texts, threads, native.Wait.LATER)
        started = encoder.start(texts, threads, wait)
        middle = len(texts) // 2
        parts = [started.part(slice(0, middle)), started.part(slice(middle, len(texts)))]
        assert np.array_equal(np.concatenate([part[0] for part in parts]), points)
        found = [of_text for part in parts for of_text in part[1]]
        assert np.array_equal(np.concatenate(found), np.concatenate(states))
        del abandoned


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_texts_are_read_in_a_fork_without_its_parents_threads() -> None:
    architecture, graph = written(SMALL, 7)
    encoder = in_c(architecture, graph, native.BEST_LEVEL)
    texts = [[1 + place % 40, 9, 11, 3] * 9 for place in range(40)]
    points, _ = encoder.read(texts, threads=2)
    begun = encoder.start(texts, 2, native.Wait.LATER)
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(begun.part(slice(0, 40))[0], points)
            os._exit(0 if same and np.array_equal(encoder.read(texts, threads=2)[0], points) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(begun.part(slice(0, 40))[0], points)


def test_numbers_in_the_middle_between_two_bytes_become_the_same_bytes_on_every_level() -> None:
    """The first norm gives numbers that lie halfway between two steps, or one or two last bits beside that."""
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 5)
    numbers = read_numbers(graph.content)
    names = [node.inputs for node in numbers.nodes if node.kind == "MatMulIntegerToFloat"]
    (step,) = (numbers.number(of[2]) for of in names if "query" in of[1])
    (inverse,) = (array for name, array in graph.computed.items() if name.endswith("query.weight:inverse"))
    halves = np.float32(step) * (np.arange(64, dtype=np.float32) * 4 - 127.5)
    for ulps in range(-2, 3):
        shift = (halves.view(np.int32) + ulps).view(np.float32)
        arrays = dict(graph.computed)
        (gain_name,) = (
            name for name in arrays if re.search(r"embeddings\.LayerNorm\.(gamma|weight):copy", name)
        )
        (shift_name,) = (
            name for name in arrays if re.search(r"embeddings\.LayerNorm\.(beta|bias):copy", name)
        )
        (inverse_name,) = (name for name, array in arrays.items() if array is inverse)
        arrays |= {
            gain_name: np.zeros(64, np.float32),
            shift_name: shift,
            inverse_name: np.ones(64, np.float32),
        }
        halfway = WrittenGraph(graph.content, graph.borrowed, arrays)
        found = [np.concatenate(in_c(architecture, halfway, level).read([[3, 9]])[1]) for level in LEVELS]
        assert np.isfinite(found[0]).all()
        assert np.array_equal(found[1], found[0])
        assert np.array_equal(found[2], found[0])


def test_the_shipped_encoder_has_the_bits_of_the_general_engine() -> None:
    architecture = parse_architecture((models.FACTS / "config.json").read_bytes(), "config.json")
    graph = load_encoder(models.FACTS / models.ENCODER_GRAPH)
    texts = [[101, *range(2000, 2000 + 97 * length, 97), 102] for length in (1, 12, 29, 62)]
    points, states = in_c(architecture, graph, native.BEST_LEVEL).read(texts)
    general = OnnxSentenceEncoder.of_written(graph, models.FACTS / models.ENCODER_GRAPH, architecture, "x")
    wanted, wanted_states = general.read(texts)
    assert (points * wanted).sum(axis=1).min() > 0.999
    assert not HAS_SAME_ORDER or np.array_equal(points, wanted)
    assert not HAS_SAME_ORDER or np.array_equal(np.concatenate(states), np.concatenate(wanted_states))


@pytest.mark.parametrize(
    ("texts", "error", "what"),
    [
        ([[1, 2], []], ShapeMismatch, "has no ids"),
        ([[1] * 161], InvalidInput, "161 tokens is too long: cut it to 160"),
        ([[1, 50]], InvalidInput, "within 0 to 49"),
        ([[-1, 5]], InvalidInput, "within 0 to 49"),
    ],
    ids=["empty", "long", "beyond", "negative"],
)
def test_what_does_not_fit_is_refused(texts: list[list[int]], error: type[Exception], what: str) -> None:
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 1)
    with pytest.raises(error, match=what):
        in_c(architecture, graph, native.BEST_LEVEL).read(texts)


def test_products_alone_are_run_and_take_a_number_of_tokens() -> None:
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 1)
    for level in LEVELS:
        encoder = in_c(architecture, graph, level)
        before = encoder.read([[3, 9, 11]])[0]
        encoder.multiply(70)
        assert np.array_equal(encoder.read([[3, 9, 11]])[0], before)
    with pytest.raises(ValueError, match="number of tokens"):
        encoder.multiply(-1)


def test_no_texts_give_nothing() -> None:
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 1)
    points, states = in_c(architecture, graph, native.BEST_LEVEL).read([])
    assert points.shape == (0, 64)
    assert states == []


def test_graphs_of_another_kind_are_refused_in_one_line() -> None:
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 1)
    without = {name: array for name, array in graph.computed.items() if "intermediate" not in name}
    short = graph.computed | {"places": graph.computed["places"][:-1]}
    for arrays in (without, short):
        with pytest.raises(InvalidInput, match="none of an encoder in int8") as caught:
            NativeSentenceEncoder(architecture, graph.content, arrays, "")
        assert "\n" not in str(caught.value)
    for content in (b"", b"no graph", graph.content[:-40], b"\x3a\xff\xff\xff\xff\x0f"):
        with pytest.raises(InvalidInput, match="pack"):
            NativeSentenceEncoder(architecture, content, graph.computed, "")


def test_numbers_of_a_graph_are_read_as_onnx_reads_them() -> None:
    onnx = pytest.importorskip("onnx")
    graph = load_encoder(models.FACTS / models.ENCODER_GRAPH)
    found = read_numbers(graph.content)
    wanted = onnx.load_model_from_string(graph.content).graph
    assert [(one.kind, one.inputs) for one in found.nodes] == [
        (node.op_type, tuple(node.input)) for node in wanted.node
    ]
    assert found.constants == {tensor.name: tensor.raw_data for tensor in wanted.initializer}
    with pytest.raises(InvalidInput, match="no single float32"):
        found.number("nothing of this name")


def test_it_serves_what_its_sizes_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    architecture, graph = written(SMALL | {"num_hidden_layers": 1}, 1)
    assert not serves(replace(architecture, activation="relu"))
    assert not serves(replace(architecture, intermediate_size=130))
    monkeypatch.setattr(native, "encoder_core", None)
    assert not serves(architecture)
    with pytest.raises(DependencyUnavailable, match="not compiled"):
        in_c(architecture, graph, 2)

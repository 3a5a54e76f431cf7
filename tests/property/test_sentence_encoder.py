"""Sentence encoders: transformers' points, the same bits whatever stands beside, numbers for any text."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnxruntime")
import torch

from htfi.adapters.native.sentence_encoder import NativeSentenceEncoder, Wait
from htfi.adapters.onnx.saturation import with_unsigned_weights
from htfi.adapters.onnx.sentence_encoder import OnnxSentenceEncoder, mean_pooled, write_graph
from htfi.adapters.onnx.session import Precision, save_graph
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.narrative.config import MAX_TOKENS, EncodingConfig
from htfi.wiring.encoder import open_encoder
from model_folders import bert_model, save

CONFIG = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}
USUAL = [[row * 7 % 50, 3, 9, row, 11, 40 - row] for row in range(12)]


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.sampled_from(["gelu", "gelu_new", "relu"]), st.integers(1, 4), st.integers(2, 12), st.integers(0, 99)
)
def test_points_equal_transformers_and_do_not_depend_on_the_batch(
    activation: str, num_texts: int, num_tokens: int, seed: int
) -> None:
    model = bert_model(CONFIG | {"hidden_act": activation}, seed)
    ids = np.random.Generator(np.random.PCG64(seed)).integers(0, 50, (num_texts, num_tokens))
    with torch.inference_mode():
        wanted = mean_pooled(model(input_ids=torch.from_numpy(ids)).last_hidden_state.numpy())
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder))
        opened = ModelFolder.open(Path(folder))
        for precision, least in ((Precision.FP32, 0.99999), (Precision.INT8, 0.97)):
            encoder = OnnxSentenceEncoder.of_folder(
                opened, precision, USUAL, cache_folder=Path(folder) / "cache"
            )
            states = encoder.encode(ids)
            assert (mean_pooled(states) * wanted).sum(axis=1).min() >= least
            for row in range(num_texts):
                assert np.array_equal(encoder.encode(ids[row : row + 1])[0], states[row])


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    save(bert_model(CONFIG, 1), tmp_path)
    opened = ModelFolder.open(tmp_path)
    encoder = OnnxSentenceEncoder.of_folder(opened, Precision.FP32, (), cache_folder=tmp_path / "cache")
    for wrong, error in (
        (np.zeros((1, 40), np.int64), InvalidInput),
        (np.full((1, 4), 50), InvalidInput),
        (np.full((1, 4), -1), InvalidInput),
        (np.zeros((1, 4), np.int32), ShapeMismatch),
        (np.zeros((0, 4), np.int64), ShapeMismatch),
    ):
        with pytest.raises(error):
            encoder.encode(wrong)
    for precision in (Precision.INT8, Precision.INT8_WIDE):
        with pytest.raises(InvalidInput):
            OnnxSentenceEncoder.of_folder(opened, precision, (), cache_folder=tmp_path / "cache")


@pytest.fixture(scope="module")
def minilm():
    return open_encoder(EncodingConfig())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "😀🚀" * 200,
        "\ud800 lone \udfff",
        "a" * 1_000_000,
        "[CLS] [SEP] [MASK]",
        "\0\x1b[31m",
        "中文" * 300,
    ],
    ids=["empty", "blank", "emoji", "surrogates", "1 MB", "specials", "controls", "chinese"],
)
def test_any_text_has_a_point_of_length_one(minilm, text: str) -> None:
    (point,), (states,) = minilm.read([text])
    assert np.isfinite(point).all()
    assert abs(float(point @ point) - 1.0) < 1e-5
    assert 2 <= len(states) <= MAX_TOKENS


@settings(max_examples=12, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
@given(st.lists(st.text(max_size=60), min_size=2, max_size=9), st.randoms(use_true_random=False))
def test_order_and_company_change_no_bit(minilm, texts: list[str], dice) -> None:
    together = minilm.encode(texts)
    order = list(range(len(texts)))
    dice.shuffle(order)
    assert np.array_equal(minilm.encode([texts[place] for place in order]), together[order])
    assert np.array_equal(np.concatenate([minilm.encode([text]) for text in texts]), together)


def test_threads_change_no_bit(minilm) -> None:
    texts = [" ".join(["word"] * (1 + at % 9)) + f" {at}" for at in range(24)]
    shared = open_encoder(EncodingConfig(threads=3))
    assert shared is not None
    assert np.array_equal(shared.encode(texts), minilm.encode(texts))


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_come_in_order_with_the_same_bits(threads: int) -> None:
    encoder = open_encoder(EncodingConfig(threads=threads))
    assert encoder is not None
    texts = [" ".join(["word"] * (1 + at * 7 % 40)) + f" {at}" for at in range(120)]
    points, states = encoder.read(texts)
    parts = list(encoder.read_parts(texts))
    assert np.array_equal(np.concatenate([part.points for part in parts]), points)
    assert [len(one) for part in parts for one in part.states] == [len(one) for one in states]
    assert np.array_equal(
        np.concatenate([one for part in parts for one in part.states]), np.concatenate(states)
    )
    assert [len(part.states) for part in encoder.read_parts([])] == [0]


def test_parts_are_begun_before_the_first_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    num_started: list[int] = []
    start = NativeSentenceEncoder.start

    def counted(self, texts, threads=1, wait=Wait.SOON):
        num_started.append(len(texts))
        return start(self, texts, threads, wait)

    monkeypatch.setattr(NativeSentenceEncoder, "start", counted)
    encoder = open_encoder(EncodingConfig(threads=2))
    assert encoder is not None
    texts = [" ".join(["word"] * 60) + f" {at}" for at in range(200)]
    parts = encoder.read_parts(texts)
    assert 0 < sum(num_started) < len(texts)
    assert sum(len(part.states) for part in parts) == len(texts) == sum(num_started)


def test_texts_that_were_begun_have_the_same_bits_in_any_order() -> None:
    """All of them, some, and those that were begun before and are wanted no longer."""
    encoder = open_encoder(EncodingConfig(threads=2))
    assert encoder is not None
    texts = [f"Acme raises its outlook {number} times {'and more ' * (number % 7)}" for number in range(60)]
    wanted, wanted_states = encoder.read(texts)  # opens it: nothing is begun before
    for begun, asked in (
        (texts, list(range(60))),
        (texts[20:40], list(range(60))),
        (texts[::-1], [7, 8, 9, 40, 3]),
        (texts[5:9], [50, 5, 51, 6, 8, 7]),
    ):
        encoder.begin(texts[:3])
        encoder.begin(begun)
        parts = list(encoder.read_parts([texts[place] for place in asked]))
        assert np.array_equal(np.concatenate([part.points for part in parts]), wanted[asked])
        states = [of_text for part in parts for of_text in part.states]
        assert [len(one) for one in states] == [len(wanted_states[place]) for place in asked]
        assert np.array_equal(
            np.concatenate(states), np.concatenate([wanted_states[place] for place in asked])
        )


def test_a_saved_graph_gives_the_bits_of_its_folder_in_either_form(tmp_path: Path) -> None:
    save(bert_model(CONFIG, 3), tmp_path)
    opened = ModelFolder.open(tmp_path)
    ids = np.arange(18, dtype=np.int64).reshape(2, 9)
    of_folder = OnnxSentenceEncoder.of_folder(opened, Precision.INT8, USUAL, cache_folder=tmp_path / "cache")
    written = write_graph(opened, Precision.INT8, USUAL)
    save_graph(tmp_path / "a.graph", written)
    wanted = of_folder.encode(ids)
    found = OnnxSentenceEncoder.of_graph(tmp_path / "a.graph", opened.architecture, "").encode(ids)
    other = OnnxSentenceEncoder(
        with_unsigned_weights(written), opened.architecture, "", weights=opened.weights
    )
    assert np.array_equal(found, wanted)
    assert np.array_equal(other.encode(ids), wanted)


def test_a_damaged_graph_is_refused(tmp_path: Path) -> None:
    save(bert_model(CONFIG, 3), tmp_path)
    opened = ModelFolder.open(tmp_path)
    (tmp_path / "a.graph").write_bytes(b"no graph")
    with pytest.raises(IntegrityError, match="reinstall htfi"):
        OnnxSentenceEncoder.of_graph(tmp_path / "a.graph", opened.architecture, "")

"""Sessions and author on the embedded engine: what is found, shared, queued or written beside others changes no bit."""

import numpy as np
import pytest

from htfi.decoding.checkpoint.folder import Architecture, ModelFamily, ModelFolder, config_json
from htfi.decoding.checkpoint.rope import Rope
from htfi.decoding.checkpoint.weights import write_safetensors
from htfi.decoding.config import DecodingConfig
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats
from htfi.decoding.sessions import KVSessions
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    Prompt,
    RequestRefused,
    ScaledMoves,
)
from htfi_train.paths.sample import sample_paths

pytest.importorskip("onnxruntime")
from htfi.adapters.onnx.network import OnnxNetwork
from htfi.adapters.onnx.session import Precision
from tiny_network import TinyTokenizer

TOKENIZER = TinyTokenizer()
HIDDEN, LAYERS, HEADS, HEAD_DIM, INNER = 64, 3, 4, 16, 96
FORM: OutputGrammar = (
    FixedField((ControlToken("view"),)),
    FreeTextField("words", 16, ControlToken("end"), (ControlToken("size"),)),
    ChoiceField("direction", ((ControlToken("up"),), (ControlToken("flat"),), (ControlToken("down"),))),
    FixedField((ControlToken("/view"), PlainText(" so"))),
    ChoiceField("way", ((PlainText(" up"),), (PlainText(" down"),))),
)
NEWS: Prompt = (
    ControlToken("s"),
    ControlToken("news"),
    PlainText(" the price rose and fell and rose again"),
    ControlToken("/news"),
)


@pytest.fixture(scope="module", params=[Precision.FP32, Precision.INT8])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OnnxNetwork:
    folder = tmp_path_factory.mktemp("model")
    architecture = Architecture(
        family=ModelFamily.LLAMA,
        hidden_size=HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        num_kv_heads=HEADS // 2,
        head_dim=HEAD_DIM,
        intermediate_size=INNER,
        vocab_size=TOKENIZER.vocab_size,
        max_positions=512,
        norm_eps=1e-5,
        activation="silu",
        tie_embeddings=False,
        rope=Rope(),
    )
    rng = np.random.Generator(np.random.PCG64(1))

    def weights(*sizes: int) -> Floats:
        return (rng.standard_normal(sizes) / np.sqrt(sizes[-1])).astype(np.float32)

    ones = np.ones(HIDDEN, np.float32)
    tensors = {
        "model.embed_tokens.weight": weights(TOKENIZER.vocab_size, HIDDEN),
        "lm_head.weight": 2 * weights(TOKENIZER.vocab_size, HIDDEN),
        "model.norm.weight": ones,
    }
    for layer in range(LAYERS):
        own = f"model.layers.{layer}."
        tensors |= {
            f"{own}input_layernorm.weight": ones,
            f"{own}post_attention_layernorm.weight": ones,
            f"{own}self_attn.q_proj.weight": weights(HEADS * HEAD_DIM, HIDDEN),
            f"{own}self_attn.k_proj.weight": weights(HEADS // 2 * HEAD_DIM, HIDDEN),
            f"{own}self_attn.v_proj.weight": weights(HEADS // 2 * HEAD_DIM, HIDDEN),
            f"{own}self_attn.o_proj.weight": weights(HIDDEN, HEADS * HEAD_DIM),
            f"{own}mlp.gate_proj.weight": weights(INNER, HIDDEN),
            f"{own}mlp.up_proj.weight": weights(INNER, HIDDEN),
            f"{own}mlp.down_proj.weight": weights(HIDDEN, INNER),
        }
    (folder / "config.json").write_bytes(config_json(architecture))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "tokenizer.json").write_text("{}")
    return OnnxNetwork(ModelFolder.open(folder), request.param, cache_folder=folder / "cache")


def test_a_rows_logits_have_the_same_bits_whatever_is_read_beside_it_and_how_it_is_cut(network: OnnxNetwork):
    rng = np.random.Generator(np.random.PCG64(2))

    def tokens(num: int) -> list[int]:
        return rng.integers(0, TOKENIZER.vocab_size, num).tolist()

    prompt, written = tokens(50), tokens(24)

    def logits(num_others: int = 0, width: int = 1, limit: int = 80, **settings: int) -> Floats:
        sessions = KVSessions(network, DecodingConfig(**settings))
        others = [sessions.open(tokens(20 + 13 * k), 250).row for k in range(num_others)]
        opened = sessions.open(prompt, limit)
        (row,) = sessions.fork(opened.row, 1)
        sessions.close(opened.row)
        after = [opened.logits[None]]
        for begin in range(0, len(written), width):
            beside = [tokens(1 + int(rng.integers(3))) for _ in others]
            after.append(sessions.extend([*others, row], [*beside, written[begin : begin + width]])[-1])
        return np.concatenate(after)

    alone = logits()
    assert np.isfinite(alone).all()
    assert alone.std() > 0.1
    for other in (
        logits(num_others=1),
        logits(num_others=6),
        logits(width=3),
        logits(width=24),
        logits(limit=400),
        logits(block_tokens=7),
        logits(block_tokens=64, cache_bytes=0),
    ):
        assert np.array_equal(alone, other)


def test_answers_and_paths_are_the_same_alone_together_warm_and_after_a_crash(
    network: OnnxNetwork, monkeypatch: pytest.MonkeyPatch
):
    requests = [
        GenerationRequest(
            (*NEWS, PlainText(f" {name}"), ScaledMoves((0.5, -2.0))),
            FORM,
            seed=i,
            temperature=1.0,
            shared=len(NEWS),
        )
        for i, name in enumerate(["a", "bc", "def up", "g", "up down", "b"])
    ]

    def author(**settings: int) -> LocalGenerator:
        return LocalGenerator(network, TOKENIZER, "tiny", DecodingConfig(**settings))

    def written(engine: LocalGenerator, asked: list[GenerationRequest]) -> list[tuple[int, ...]]:
        answers = engine.write(asked)
        assert all(isinstance(answer, Completion) for answer in answers), answers
        return [answer.tokens for answer in answers if isinstance(answer, Completion)]

    alone = [written(author(), [request])[0] for request in requests]
    assert len(set(alone)) == len(alone)
    warm = author()
    for engine in (warm, warm, author(max_batch=2), author(block_tokens=5)):
        assert written(engine, requests) == alone
    prefix = warm.vocabulary.encode((*NEWS, ControlToken("path")))
    paths = sample_paths(warm.sessions, warm.vocabulary, prefix, 12, 6, seed=1)
    cold = author(cache_bytes=0)
    monkeypatch.setattr("htfi_train.paths.sample.MAX_FORKS", 5)
    again = sample_paths(cold.sessions, cold.vocabulary, prefix, 12, 6, seed=1)
    assert not isinstance(paths, RequestRefused)
    assert not isinstance(again, RequestRefused)
    assert np.array_equal(paths.bins, again.bins)

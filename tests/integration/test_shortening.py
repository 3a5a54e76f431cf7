"""Training of a short encoder: it begins as layers of a longer one, comes nearer to it, and can continue."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from htfi import models
from htfi.adapters.onnx.sentence_encoder import load_encoder
from htfi.decoding.checkpoint.folder import parse_architecture
from htfi.domain.errors import InvalidInput
from htfi.narrative.config import EncodingConfig
from htfi.narrative.facts.network import FactHeads
from htfi.wiring.encoder import shipped_encoder
from htfi_train.facts.lines import read_lines
from htfi_train.torch.shortening import EncoderShortener, ShorteningConfig, shorten, written_weights

TEXTS = [
    "Acme profit falls short of forecasts",
    "Globex raises its full-year outlook, the company said on Monday.",
    "Fed cuts its target rate by 50 bp to 4.75%",
    "Initech to buy Hooli for $2.4 billion in cash, sources said",
] * 4
HELD = ["Regulators clear the merger of Acme and Globex", "Oil rises 2% as stocks fall"]


def shortener(out: Path, layers: tuple[int, ...], epochs: int = 1) -> EncoderShortener:
    shape = parse_architecture((models.FACTS / "config.json").read_bytes(), "config.json")
    arrays = load_encoder(models.FACTS / models.ENCODER_GRAPH).computed
    return EncoderShortener(
        shipped_encoder(EncodingConfig(threads=1)),
        FactHeads.load(models.FACTS),
        shape,
        written_weights(shape, arrays, layers),
        FactHeads.load(models.FACTS),
        ShorteningConfig(layers, epochs=epochs, batch=4, average=0.5),
        out,
        lambda _: None,
    )


def test_all_layers_of_the_written_graph_give_the_states_of_the_shipped_encoder(tmp_path: Path) -> None:
    gap = shortener(tmp_path, (0, 1, 2)).judge(HELD)
    assert gap.states < 0.01
    assert gap.cosine > 0.998
    assert min(gap.same.values()) > 0.9


@pytest.mark.slow
def test_two_layers_and_their_heads_come_nearer_epoch_by_epoch_and_a_run_continues(tmp_path: Path) -> None:
    lines = read_lines(Path("corpora/facts"))
    first = shortener(tmp_path, (0, 2))
    before = first.judge(TEXTS).states
    first.train(lambda _: TEXTS, HELD)
    after = first.judge(TEXTS).states
    again = shortener(tmp_path, (0, 2), epochs=2)
    again.train(lambda _: TEXTS, HELD)
    assert before > after > again.judge(TEXTS).states
    assert (
        again.weights()["embeddings.LayerNorm.weight"] == first.weights()["embeddings.LayerNorm.weight"]
    ).all()
    given, learnt = FactHeads.load(models.FACTS), again.fact_heads(lines[:40])
    assert (learnt.weights["roles"] != given.weights["roles"]).any()
    assert learnt.temperatures.keys() == given.temperatures.keys()
    assert all(0.5 <= one <= 4.0 for one in learnt.temperatures.values())


def test_a_layer_that_there_is_not_and_a_folder_without_lines_are_refused_in_one_line(tmp_path: Path) -> None:
    encoder = shipped_encoder(EncodingConfig(threads=1))

    def shortened(corpora: Path, *layers: int) -> None:
        config = ShorteningConfig(layers)
        shorten(encoder, models.FACTS, models.FACTS, corpora, config, tmp_path, lambda _: None)

    with pytest.raises(InvalidInput, match="layers 0 to 2"):
        shortened(Path("corpora"), 1, 3)
    with pytest.raises(InvalidInput, match="no corpora of facts"):
        shortened(tmp_path, 0, 2)

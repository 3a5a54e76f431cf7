"""Heads: bits that come again, files that were changed are refused, probabilities for any embedding."""

from pathlib import Path

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.narrative.encoding import heads as files
from htfi.narrative.encoding.fitting import FittingConfig, fit_head
from htfi.narrative.encoding.heads import Head, Heads, save

LABELS = ("good", "bad", "neutral")
TEXTS = ["profit rose", "profit fell", "profit was flat", "loss narrowed", "loss widened", "opens office"]
TARGETS = np.array([0, 1, 2, 0, 1, 2])


def _fit(hidden: int = 0) -> tuple[Head, np.ndarray]:
    dice = np.random.Generator(np.random.PCG64(3))
    embeddings = dice.standard_normal((len(TEXTS), 16)).astype(np.float32)
    return fit_head(
        "sentiment", LABELS, embeddings, TEXTS, TARGETS, config=FittingConfig(hidden=hidden)
    ), embeddings


@pytest.mark.parametrize("hidden", [0, 8])
def test_fitted_head_tells_its_own_lines(hidden: int) -> None:
    head, embeddings = _fit(hidden)
    assert head.probabilities(embeddings, TEXTS).argmax(axis=1).tolist() == TARGETS.tolist()


def test_same_lines_give_the_same_bits(tmp_path: Path) -> None:
    digests = {save(tmp_path / str(n), [_fit()[0]], "e", {"n": 1}) for n in range(2)}
    assert len(digests) == 1


def test_saved_heads_score_as_before(tmp_path: Path) -> None:
    head, embeddings = _fit(8)
    digest = save(tmp_path, [head], "e", {})
    loaded = Heads.load(tmp_path, digest)
    told = loaded.score(embeddings, TEXTS)["sentiment"]
    assert np.abs(told - head.probabilities(embeddings, TEXTS)).max() < 5e-3
    assert loaded.digest == digest


@pytest.mark.parametrize("file", [files.FACTS_FILE, files.WEIGHTS_FILE])
def test_changed_byte_is_refused(tmp_path: Path, file: str) -> None:
    digest = save(tmp_path, [_fit()[0]], "e", {})
    content = bytearray((tmp_path / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / file).write_bytes(bytes(content))
    with pytest.raises(IntegrityError, match="changed"):
        Heads.load(tmp_path, digest)


def test_cut_or_missing_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="htfi models heads"):
        Heads.load(tmp_path)
    save(tmp_path, [_fit()[0]], "e", {})
    weights = (tmp_path / files.WEIGHTS_FILE).read_bytes()
    for wrong in (weights[:-2], weights + b"\0\0", b""):
        (tmp_path / files.WEIGHTS_FILE).write_bytes(wrong)
        with pytest.raises(InvalidInput):
            Heads.load(tmp_path)


def test_any_embedding_gives_probabilities() -> None:
    head, _ = _fit(8)
    wild = np.array([[np.nan] * 16, [np.inf] * 16, [-np.inf] * 16, [3e38] * 16, [0.0] * 16], np.float32)
    told = head.probabilities(wild, ["", "?", "🚀" * 500, "\x00\ud800", "a" * 100_000])
    assert np.isfinite(told).all()
    assert np.allclose(told.sum(axis=1), 1)


def test_texts_of_another_number_are_refused() -> None:
    head, embeddings = _fit()
    with pytest.raises(ShapeMismatch):
        Heads({"sentiment": head}).score(embeddings, TEXTS[:2])

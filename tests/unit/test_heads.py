"""Heads: bits that come again, files that were changed are refused, probabilities for any embedding."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.narrative.encoding import heads as files
from htfi.narrative.encoding.heads import Head, Heads, cue_ids, save_heads
from htfi_train import head_fitting as fitting
from htfi_train.head_fitting import FittingConfig, HeadExamples, fit_head

LABELS = ("good", "bad", "neutral")
TEXTS = ["profit rose", "profit fell", "profit was flat", "loss narrowed", "loss widened", "opens office"]
WORDS = [cue_ids(text) for text in TEXTS]
TARGETS = np.array([0, 1, 2, 0, 1, 2])


CONFIG = FittingConfig(num_seen=8, num_fits=2, num_epochs=60, batch=3, rate=0.02, dropout=0.0)


def _encoded() -> tuple[np.ndarray, list[np.ndarray]]:
    dice = np.random.Generator(np.random.PCG64(3))
    states = [dice.standard_normal((3 + place, 16)).astype(np.float32) for place in range(len(TEXTS))]
    return np.stack([state.mean(axis=0) for state in states]), states


def _fit(config: FittingConfig = CONFIG) -> Head:
    points, states = _encoded()
    return fit_head(
        "sentiment", LABELS, HeadExamples(points, states, TEXTS, TARGETS, np.ones(len(TEXTS))), config
    )


def test_fitted_head_tells_its_own_lines() -> None:
    head = _fit()
    assert head.probabilities(*_encoded(), WORDS).argmax(axis=1).tolist() == TARGETS.tolist()


def test_gradients_are_those_of_the_loss() -> None:
    points, states = _encoded()
    weights = np.linspace(0.5, 2.0, len(TEXTS))
    fit = fitting.HeadFit(
        3, HeadExamples(points, states, TEXTS, TARGETS, weights), replace(CONFIG, smoothing=0.1), 1
    )
    rows = np.arange(len(TEXTS))
    told = fit.gradients(rows)

    def loss() -> float:
        head = Head("h", LABELS, fit.weights, fit.bias, fit.token_weights, fit.token_biases)
        goal = np.full((len(TEXTS), 3), 0.1 / 3)
        goal[rows, TARGETS] += 0.9
        rises = -(goal * np.log(head.probabilities(points, states, WORDS))).sum(axis=1)
        return float((rises * weights).sum() / weights.sum())

    for array, gradient in (
        (fit.token_weights, told[0]),
        (fit.token_biases, told[1]),
        (fit.weights, told[2]),
        (fit.bias, told[3]),
    ):
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        kept, step = array[place], np.float32(1e-2)
        array[place] = kept + step
        above = loss()
        array[place] = kept - step
        below = loss()
        array[place] = kept
        assert (above - below) / (2 * step) == pytest.approx(gradient[place], rel=2e-2)


def test_same_lines_give_the_same_bits(tmp_path: Path) -> None:
    digests = {save_heads(tmp_path / str(n), [_fit()], "e", {"n": 1}) for n in range(2)}
    assert len(digests) == 1


def test_saved_heads_score_as_before(tmp_path: Path) -> None:
    head = _fit()
    digest = save_heads(tmp_path, [head], "e", {})
    loaded = Heads.load(tmp_path, digest)
    told = loaded.score(*_encoded(), TEXTS)["sentiment"]
    assert np.abs(told - head.probabilities(*_encoded(), WORDS)).max() < 5e-3
    assert loaded.digest == digest


def test_batches_change_no_bit() -> None:
    head = _fit()
    points, states = _encoded()
    at_once = head.probabilities(points, states, WORDS)
    one_by_one = [
        head.probabilities(points[n : n + 1], states[n : n + 1], WORDS[n : n + 1])[0]
        for n in range(len(TEXTS))
    ]
    assert at_once.tobytes() == np.stack(one_by_one).tobytes()


@pytest.mark.parametrize("file", [files.METADATA_FILE, files.WEIGHTS_FILE])
def test_changed_byte_is_refused(tmp_path: Path, file: str) -> None:
    digest = save_heads(tmp_path, [_fit()], "e", {})
    content = bytearray((tmp_path / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / file).write_bytes(bytes(content))
    with pytest.raises(IntegrityError, match="changed"):
        Heads.load(tmp_path, digest)


def test_cut_or_missing_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="htfi models heads"):
        Heads.load(tmp_path)
    save_heads(tmp_path, [_fit()], "e", {})
    weights = (tmp_path / files.WEIGHTS_FILE).read_bytes()
    for wrong in (weights[:-2], weights + b"\0\0", b""):
        (tmp_path / files.WEIGHTS_FILE).write_bytes(wrong)
        with pytest.raises(InvalidInput):
            Heads.load(tmp_path)


def test_any_point_and_state_give_probabilities() -> None:
    head = _fit()
    wild = np.array([[np.nan] * 16, [np.inf] * 16, [-np.inf] * 16, [3e38] * 16, [0.0] * 16], np.float32)
    texts = ["", "?", "🚀" * 500, "\x00\ud800", "a" * 100_000]
    for states in ([wild] * 5, [row[None] for row in wild]):
        told = head.probabilities(wild, states, [cue_ids(text) for text in texts])
        assert np.isfinite(told).all()
        assert np.allclose(told.sum(axis=1), 1)


def test_parts_of_other_sizes_are_refused() -> None:
    head = _fit()
    points, states = _encoded()
    for wrong in ((points, states[:1], TEXTS), (points[:, :5], states, TEXTS), (points, states, TEXTS[:2])):
        with pytest.raises(ShapeMismatch):
            Heads({"sentiment": head}).score(*wrong)


@pytest.mark.parametrize(
    "wrong", [{"num_seen": 10**9}, {"temperature": 0.0}, {"width": 0}, {"labels": ("one",)}, {"more": 1}]
)
def test_facts_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    save_heads(tmp_path, [_fit()], "e", {})
    facts = json.loads((tmp_path / files.METADATA_FILE).read_text())
    facts["heads"][0] |= wrong
    (tmp_path / files.METADATA_FILE).write_text(json.dumps(facts))
    with pytest.raises(InvalidInput, match=r"heads\.json"):
        Heads.load(tmp_path)

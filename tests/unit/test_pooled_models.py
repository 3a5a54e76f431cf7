"""The file of fitted models: read as it was written, refused in one line where it is not what it should be."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.forecasting.experts.pooled.features import FEATURES
from htfi.forecasting.experts.pooled.models import (
    FILE,
    FORMAT,
    EncodedModels,
    PooledModels,
    decode_models,
    encode_model,
    read_models,
    write_models,
)
from htfi.forecasting.experts.pooled.trees import LEAF_UNIT, MAX_LOG_SCALE, ScaleTrees
from htfi.forecasting.experts.pooled.typical import typical_trees

HORIZONS = (1, 5, 22)
NUM, DEPTH = 7, 3
RNG = np.random.Generator(np.random.PCG64(5))


def some_trees() -> ScaleTrees:
    return ScaleTrees(
        0.1 * RNG.standard_normal((len(FEATURES) + 1, 3)),
        RNG.integers(0, len(FEATURES), (NUM, DEPTH)),
        RNG.standard_normal((NUM, DEPTH)).astype(np.float32),
        RNG.integers(-90_000, 90_000, (NUM, 2**DEPTH, 3)),
    )


def some_rows(num: int) -> np.ndarray:
    return RNG.standard_normal((num, len(FEATURES))).astype(np.float32)


def encoded(*models: tuple[int, ScaleTrees], **changes: object) -> bytes:
    fields = {
        "format": FORMAT, "horizons": list(HORIZONS), "features": list(FEATURES), "fitted_to": ["test"],
        "models": [encode_model(trees, from_ns, 100) for from_ns, trees in models],
    }  # fmt: skip
    return msgspec.json.encode(EncodedModels(**(fields | changes)))  # pyright: ignore[reportArgumentType]


def test_trees_sum_the_leaves_that_a_plain_walk_reaches() -> None:
    trees, rows = some_trees(), some_rows(40)
    found = trees.predict(rows)
    for row, sums in zip(rows, found, strict=True):
        plain = trees.linear[-1].copy()
        for place, value in enumerate(row.tolist()):
            plain += value * trees.linear[place]
        whole = np.zeros(3, np.int64)
        for tree in range(NUM):
            leaf = 0
            for level in range(DEPTH):
                leaf += int(row[trees.features[tree, level]] > trees.thresholds[tree, level]) << level
            whole += trees.leaves[tree, leaf]
        np.testing.assert_array_equal(sums, np.clip(plain + whole * LEAF_UNIT, -MAX_LOG_SCALE, MAX_LOG_SCALE))
    assert len(found) == 40


def test_a_row_is_forecast_alone_as_among_thousands() -> None:
    trees, rows = some_trees(), some_rows(2_500)
    np.testing.assert_array_equal(trees.predict(rows)[2_300:2_301], trees.predict(rows[2_300:2_301]))


def test_a_written_file_is_read_with_the_same_bits(tmp_path: Path) -> None:
    trees, rows = some_trees(), some_rows(20)
    write_models(tmp_path / "new" / "folder", encoded((10, trees)))
    models = read_models(tmp_path / "new" / "folder", HORIZONS)
    np.testing.assert_array_equal(models.predict(rows, np.full(20, 10)), trees.predict(rows))
    assert len(models.digest) == 64


def test_each_bar_has_the_newest_fit_that_may_forecast_it_and_typical_terms_before_the_first() -> None:
    first, second, rows = some_trees(), some_trees(), some_rows(5)
    models = decode_models(encoded((100, first), (200, second)), HORIZONS, "file")
    found = models.predict(rows, np.array([99, 100, 199, 200, 10**18]))
    expected = [typical_trees(HORIZONS), first, first, second, second]
    np.testing.assert_array_equal(
        found, [trees.predict(row[None])[0] for trees, row in zip(expected, rows, strict=True)]
    )
    assert models.starts_ns == (100, 200)


def test_horizons_are_taken_from_those_fitted() -> None:
    trees, rows = some_trees(), some_rows(4)
    models = decode_models(encoded((0, trees)), (1, 22), "file")
    np.testing.assert_array_equal(models.predict(rows, np.full(4, 9)), trees.predict(rows)[:, [0, 2]])


def test_without_a_file_typical_terms_forecast() -> None:
    rows = some_rows(3)
    found = PooledModels(HORIZONS).predict(rows, np.array([1, 2, 3]))
    np.testing.assert_array_equal(found, typical_trees(HORIZONS).predict(rows))


def _changed_model(**changes: object) -> bytes:
    return encoded(
        (0, some_trees()), models=[msgspec.structs.replace(encode_model(some_trees(), 0, 1), **changes)]
    )


BROKEN = {
    "truncated": (lambda: encoded((0, some_trees()))[:-40], "is damaged .*fit it again"),
    "empty": (lambda: b"", "is damaged"),
    "not text": (lambda: b"\xff\xfe{}", "is damaged"),
    "another format": (lambda: encoded((0, some_trees()), format="other-9"), "format 'other-9'"),
    "other features": (
        lambda: encoded((0, some_trees()), features=["price"]),
        "other features .*price|other features",
    ),
    "no fits": (lambda: encoded(), "do not rise in time"),
    "fits out of order": (lambda: encoded((5, some_trees()), (5, some_trees())), "do not rise in time"),
    "a leaf too large": (lambda: _changed_model(leaves=[[[2**40] * 3] * 8] * NUM), "out of range"),
    "a feature that is none": (
        lambda: _changed_model(features=[[len(FEATURES)] * DEPTH] * NUM),
        "out of range",
    ),
    "a leaf missing": (lambda: _changed_model(leaves=[[[0] * 3] * 7] * NUM), "is damaged"),
    "linear terms missing": (lambda: _changed_model(linear=[[0.0] * 3]), "linear terms"),
    "trees too deep": (
        lambda: _changed_model(features=[[0] * 9], thresholds=[[0.0] * 9], leaves=[]),
        "of depth 9",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    make, words = BROKEN[kind]
    (tmp_path / FILE).write_bytes(make())
    with pytest.raises(InvalidInput, match=words) as caught:
        read_models(tmp_path, HORIZONS)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / FILE) in str(caught.value)


def test_a_folder_without_the_file_and_other_horizons_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="htfi models fit"):
        read_models(tmp_path, HORIZONS)
    with pytest.raises(InvalidInput, match=r"\[1, 5, 22\], not \[10\]"):
        decode_models(encoded((0, some_trees())), (1, 10), "file")


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DependencyUnavailable, match="cannot write"):
        write_models(tmp_path / "file", b"{}")

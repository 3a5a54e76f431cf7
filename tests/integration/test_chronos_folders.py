"""Foundation models from folders: miniature random checkpoints of each kind, written with the library's own classes."""

import json
import shutil
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.adapters.chronos.model import ChronosModel, open_foundation
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import LEVELS
from pooled_bars import market_paths, write_bars

pytestmark = pytest.mark.skipif(
    find_spec("chronos") is None, reason="the extra [foundation] is not installed"
)

HORIZONS = (1, 5, 22)
SIZES = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 1, "num_heads": 4, "dropout_rate": 0.0}
PATCHES = {"context_length": 64, "input_patch_size": 8, "input_patch_stride": 8, "use_reg_token": True}


def write_second(folder: Path) -> None:
    from chronos.chronos2 import Chronos2Model
    from chronos.chronos2.config import Chronos2CoreConfig

    config = Chronos2CoreConfig(**SIZES)
    config.chronos_config = {
        **PATCHES, "output_patch_size": 8, "quantiles": [0.01, *np.arange(1, 20) / 20, 0.99], "use_arcsinh": True,
        "max_output_patches": 4,
    }  # fmt: skip
    config.chronos_pipeline_class = "Chronos2Pipeline"
    Chronos2Model(config).save_pretrained(folder)


def write_bolt(folder: Path) -> None:
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    config = T5Config(**SIZES, num_decoder_layers=1, vocab_size=2, decoder_start_token_id=0, pad_token_id=0)
    config.chronos_config = {**PATCHES, "prediction_length": 32, "quantiles": [i / 10 for i in range(1, 10)]}
    config.chronos_pipeline_class = "ChronosBoltPipeline"
    ChronosBoltModelForForecasting(config).save_pretrained(folder)


def write_samples(folder: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        **SIZES, num_decoder_layers=1, vocab_size=64, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1
    )
    config.chronos_config = {
        "tokenizer_class": "MeanScaleUniformBins", "tokenizer_kwargs": {"low_limit": -15.0, "high_limit": 15.0},
        "context_length": 64, "prediction_length": 32, "n_tokens": 64, "n_special_tokens": 2, "pad_token_id": 0,
        "eos_token_id": 1, "use_eos_token": True, "model_type": "seq2seq", "num_samples": 20, "temperature": 1.0,
        "top_k": 50, "top_p": 1.0,
    }  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)


WRITERS: dict[str, Callable[[Path], None]] = {
    "chronos-2": write_second,
    "chronos-bolt": write_bolt,
    "chronos-t5": write_samples,
}


@pytest.fixture(scope="module", params=WRITERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    where = tmp_path_factory.mktemp("foundation") / request.param
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        WRITERS[request.param](where)
    return where


@pytest.fixture(scope="module")
def model(folder: Path) -> ChronosModel:
    return open_foundation(folder, num_samples=20)


def returns(length: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    return 0.01 * np.random.default_rng(seed).standard_normal(length)


def test_every_kind_gives_rising_quantiles_for_a_batch_of_unequal_series(model: ChronosModel) -> None:
    said = model.quantiles([returns(300), returns(40, 1), returns(2, 2)], HORIZONS, LEVELS)
    assert said.shape == (3, 3, 13)
    assert np.isfinite(said).all()
    assert (np.diff(said, axis=2) >= 0).all()
    assert (said[:, :, -1] > said[:, :, 0]).all()


def test_what_tells_nothing_is_nan_and_spoils_no_neighbour(model: ChronosModel) -> None:
    good = returns(50)
    strange = [np.zeros(30), np.array([]), np.full(9, np.nan), np.array([0.01]), np.full(40, 0.02)]
    said = model.quantiles([*strange[:2], good, *strange[2:]], HORIZONS, LEVELS)
    told = np.isfinite(said).all(axis=(1, 2))
    assert told.tolist() == [False, False, True, False, False, False]


def test_gaps_are_left_out_and_wild_values_do_no_harm(model: ChronosModel) -> None:
    values = returns(40)
    gappy = np.insert(values, [3, 17], [np.nan, np.inf])
    plain = model.quantiles([values], HORIZONS, LEVELS)
    assert (model.quantiles([gappy], HORIZONS, LEVELS) == plain).all()
    wild = np.append(values, 1e6)
    said = model.quantiles([wild], HORIZONS, LEVELS)
    assert np.isfinite(said).all()


def test_the_same_batch_gives_the_same_numbers_and_leaves_the_dice_of_others_alone(
    model: ChronosModel, folder: Path
) -> None:
    import torch

    contexts = [returns(64), returns(33, 5)]
    first = model.quantiles(contexts, HORIZONS, LEVELS)
    torch.manual_seed(1)
    expected = torch.rand(1).item()
    torch.manual_seed(1)
    assert (model.quantiles(contexts, HORIZONS, LEVELS) == first).all()
    assert torch.rand(1).item() == expected
    assert (open_foundation(folder, num_samples=20).quantiles(contexts, HORIZONS, LEVELS) == first).all()


def test_quantiles_are_in_the_units_of_the_returns(model: ChronosModel) -> None:
    small, large = (model.quantiles([scale * returns(64)], HORIZONS, LEVELS) for scale in (2.0**-12, 2.0**4))
    assert np.allclose(large / small, 2.0**16, rtol=1e-4)


def test_only_the_last_returns_that_the_model_reads_count(model: ChronosModel) -> None:
    values = returns(200)
    short = model.quantiles([values[-model.max_context :]], HORIZONS, LEVELS)
    assert model.max_context == 64
    assert (model.quantiles([values], HORIZONS, LEVELS) == short).all()


def test_nothing_is_asked_of_the_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    assert open_foundation(folder).version.startswith(folder.name + "@")


def broken(folder: Path, to: Path, what: str) -> str:
    """Break a copy in one way; what the line must say."""
    shutil.copytree(folder, to)
    config, weights = to / "config.json", to / "model.safetensors"
    match what:
        case "no folder":
            shutil.rmtree(to)
            return "no config.json"
        case "no JSON":
            config.write_text("{")
            return "not JSON"
        case "a list":
            config.write_text("[]")
            return "not an object"
        case "another model":
            config.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
            return "LlamaForCausalLM"
        case "no weights":
            weights.unlink()
            return "safetensors"
        case "cut weights":
            weights.write_bytes(weights.read_bytes()[:-100])
            return "cannot be loaded"
        case _:
            told = json.loads(config.read_text())
            told["chronos_config"] = {"context_length": "many"}
            config.write_text(json.dumps(told))
            return "Chronos|cannot be loaded|tokenizer"


@pytest.mark.parametrize(
    "what", ["no folder", "no JSON", "a list", "another model", "no weights", "cut weights", "odd settings"]
)
def test_a_broken_folder_is_refused_in_one_line(folder: Path, tmp_path: Path, what: str) -> None:
    said = broken(folder, tmp_path / "copy", what)
    with pytest.raises(InvalidInput, match=said) as refusal:
        open_foundation(tmp_path / "copy")
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
def test_a_folder_stands_in_the_table_of_models_fit(folder: Path, tmp_path: Path) -> None:
    bars = write_bars(tmp_path / "bars.csv", market_paths(760, 4, 2))
    done = CliRunner().invoke(
        cli,
        [
            "models", "fit", str(bars), "--out", str(tmp_path / "mine"), "--trees", "0", "--foundation", str(folder),
            "--set", 'experts=["ewma"]', "--trials", str(tmp_path / "trials"), "--json", str(tmp_path / "out.json"),
        ],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    of_chronos = [row for row in rows if row["forecaster"] == "chronos"]
    assert [row["bars"] for row in of_chronos] == [1, 5, 22]
    assert all(row["n"] > 50 and row["CRPS, bp"] > 0.0 for row in of_chronos)

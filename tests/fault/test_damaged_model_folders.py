"""Model folders that are cut short, damaged or contradict themselves are refused in one line that names the file."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.checkpoint.weights import INDEX_FILE, open_weights, write_safetensors
from htfi.domain.errors import HtfiError, InvalidInput


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    arrays = {"a": np.arange(64, dtype=np.float32), "b": np.ones((8, 8), np.float32)}
    write_safetensors(tmp_path / "model.safetensors", arrays)
    return (tmp_path / "model.safetensors").read_bytes()


def refusal(folder: Path) -> str:
    with pytest.raises(HtfiError) as refused:
        open_weights(folder)
    message = str(refused.value)
    assert "\n" not in message
    assert "model folder again" in message
    return message


def with_header(folder: Path, header: object, num_data_bytes: int) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(num_data_bytes))


def test_file_cut_at_any_place_is_refused(tmp_path: Path, whole: bytes) -> None:
    for num_kept in [*range(0, len(whole) - 512, 7), len(whole) - 512, len(whole) - 1]:
        (tmp_path / "model.safetensors").write_bytes(whole[:num_kept])
        assert "model.safetensors" in refusal(tmp_path)


def test_every_flipped_header_byte_is_refused_or_read_without_a_traceback(
    tmp_path: Path, whole: bytes
) -> None:
    num_header_bytes = struct.unpack("<Q", whole[:8])[0]
    refusals: list[str] = []
    for at in range(8 + num_header_bytes):
        damaged = bytearray(whole)
        damaged[at] ^= 0x15
        (tmp_path / "model.safetensors").write_bytes(damaged)
        try:
            weights = open_weights(tmp_path)
            weights.array("a", (64,))
            weights.array("b", (8, 8))
        except HtfiError as error:
            refusals.append(str(error))
    assert all("model.safetensors" in message for message in refusals)
    assert len(refusals) > num_header_bytes / 2  # the rest lies in spaces and in metadata


@pytest.mark.parametrize(
    ("spans", "num_data_bytes", "said"),
    [
        ({"a": (0, 8), "b": (4, 12)}, 12, "'b' overlaps"),
        ({"a": (0, 8), "b": (12, 20)}, 20, "'b' leaves a gap"),
        ({"a": (0, 8), "b": (8, 16)}, 12, "'b' ends 4 bytes later"),
        ({"a": (0, 8)}, 12, "4 bytes after its last tensor"),
        ({"a": (0, 4)}, 4, "'a' does not fill"),
    ],
)
def test_tensors_that_do_not_tile_the_file_are_refused_by_name(
    tmp_path: Path, spans: dict[str, tuple[int, int]], num_data_bytes: int, said: str
) -> None:
    header = {name: {"dtype": "F32", "shape": [2], "data_offsets": span} for name, span in spans.items()}
    with_header(tmp_path, header, num_data_bytes)
    assert said in refusal(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{nonsense",
        {"a": 3},
        {"a": {"dtype": "F32"}},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        {"a": {"dtype": "?", "shape": [1], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}},
    ],
)
def test_senseless_headers_are_refused(tmp_path: Path, header: object) -> None:
    with_header(tmp_path, header, 4)
    assert "header" in refusal(tmp_path)


def test_missing_shard_and_missing_tensor_are_named(tmp_path: Path) -> None:
    index = tmp_path / INDEX_FILE
    write_safetensors(tmp_path / "one.safetensors", {"a": np.ones(2, np.float32)})
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert "lacks two.safetensors" in refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}))
    assert "lacks tensor 'b'" in refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../one.safetensors"}}))
    assert "not a file in its folder" in refusal(tmp_path)
    index.write_text("{}")
    assert "no weight_map" in refusal(tmp_path)


def test_config_that_is_no_json_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe", b"{", b"[1]"):
        (tmp_path / "config.json").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"config\.json"):
            ModelFolder.open(tmp_path)

"""Settings are listed with their meaning, and settings files of earlier versions are read by what they state."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htfi.apps.cli.settings import settings_page
from htfi.domain.errors import InvalidInput
from htfi.wiring.settings import (
    RECORDED_CONSTANTS,
    Settings,
    constant,
    decode_settings,
    encode_settings,
    list_settings,
    load_settings,
    settings_digest,
)

ROOT = Path(__file__).parents[2]
# Of the defaults, since 0.1.0: it changes only where a parameter that shapes decisions does.
DIGEST = "15466e3fe4d6684cede32ebed4889aef397091917c8ef41f8009775e9fec8759"
CONSTANTS = [(table, key) for table, keys in RECORDED_CONSTANTS.items() for key in keys]


def saved(table: str, key: str, value: Any) -> bytes:
    tables = json.loads(encode_settings(Settings()))
    tables[table][key] = value
    return msgspec.json.encode(tables)


def another(value: Any) -> Any:
    return (
        [*value, "more"] if isinstance(value, tuple) else f"1{value}" if isinstance(value, str) else value * 2
    )


def test_every_setting_has_a_meaning_and_a_unit_where_it_is_a_quantity() -> None:
    listed = list_settings()
    assert {one.table for one in listed} == {table.name for table in fields(Settings)}
    assert 100 < len(listed) < 150
    for one in listed:
        assert one.meaning
        assert one.meaning[0].islower() or one.meaning.split()[0].strip(",").isupper()
        is_number = one.default.replace("_", "").replace(".", "").isdigit()
        assert one.unit or not is_number or "temperature" in one.key or one.key == "ewma_decay", one


def test_the_page_of_settings_is_the_listed_one() -> None:
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == settings_page() + "\n"


def test_a_constant_leaves_the_digest_of_the_settings_as_it_was() -> None:
    assert settings_digest(Settings()) == DIGEST


@pytest.mark.parametrize(("table", "key"), CONSTANTS)
def test_old_settings_with_the_constants_value_are_read(table: str, key: str) -> None:
    value = constant(table, key)
    assert value is not None
    assert decode_settings(saved(table, key, value)) == Settings()


@pytest.mark.parametrize(("table", "key"), CONSTANTS)
def test_old_settings_with_another_value_are_read_to_verify_and_refused_to_go_on(
    table: str, key: str
) -> None:
    data = saved(table, key, another(constant(table, key)))
    assert decode_settings(data, to_verify=True) == Settings()
    with pytest.raises(InvalidInput, match=rf"{table}\.{key} = .* this version fixes at"):
        decode_settings(data)


def test_settings_that_an_old_file_does_not_name_have_their_defaults() -> None:
    tables = json.loads(encode_settings(Settings()))
    del tables["policy"]["max_band_width"]
    del tables["secure"]
    assert decode_settings(msgspec.json.encode(tables)) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[health]\nnum_probed = 4", r"health\.num_probed is not a setting: it is fixed at 3; remove it"),
        ("[narrative]\nmin_weight = 0.5", r"narrative\.min_weight is not a setting: it is fixed at 0\.125"),
        ("[desk]\nnode = 'a'", "unknown key 'node'"),
    ],
)
def test_a_constant_in_a_settings_file_stops_the_start_with_its_value(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        load_settings(file)

"""Settings are listed with their meaning, and settings files of earlier versions are read by what they state."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from htfi.apps.cli.settings import settings_page
from htfi.domain.errors import InvalidInput
from htfi.wiring.setting_list import list_settings
from htfi.wiring.settings import (
    EARLIER_NAMES,
    RECORDED_CONSTANTS,
    Settings,
    constant,
    decode_settings,
    digest_of,
    encode_settings,
    load_settings,
    override,
    settings_digest,
    settings_to_record,
)

ROOT = Path(__file__).parents[2]
# Of the defaults, by their names of today and by those of 0.1.0: they change only where a parameter that shapes
# decisions does.
DIGEST = "39a0f143299db1f5bef1acb006e600a2d41d56b2c406a15bef24c20869386011"
EARLIER_DIGEST = "60a6b78eec45e28d3104c4959515556e5b86a2959656f3864bfaa098a25a23da"
EARLIER_TABLES = {new: old for old, new in EARLIER_NAMES.items() if "." not in old}
EARLIER = [
    (f"{EARLIER_TABLES.get(table, table)}.{key}", f"{table}.{new}")
    for old, new in EARLIER_NAMES.items()
    for table, _, key in [old.partition(".")]
    if key
] + [("secure.cool_down_ns", "suspicion.cool_down_ns"), ("buffering.lead_s", "prefetching.lead_s")]
EARLIER.append(("desk.max_streams", "server.max_streams"))
CONSTANTS = [(table, key) for table, keys in RECORDED_CONSTANTS.items() for key in keys]


def saved(table: str, key: str, value: Any) -> bytes:
    tables = json.loads(encode_settings(Settings()))
    tables[table][key] = value
    return msgspec.json.encode(tables)


def changed(old: str) -> tuple[str, str, Any]:
    """Table and key of today of an earlier name, and a value that is not the default."""
    table, _, key = dict(EARLIER)[old].partition(".")
    held = getattr(getattr(Settings(), table), key)
    match held:
        case str():
            return table, key, "fixed" if key == "draft_length" else "elsewhere"
        case dict():
            return table, key, {"JPM": "Chase"}
        case tuple():
            return table, key, (("chat", "social"),)
        case _:
            return table, key, type(held)(held * 0.96 if isinstance(held, float) else held + 1)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {as_toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value)


def another(value: Any) -> Any:
    return (
        [*value, "more"] if isinstance(value, tuple) else f"1{value}" if isinstance(value, str) else value * 2
    )


def test_every_setting_has_a_meaning_and_a_unit_where_it_is_a_quantity() -> None:
    listed = list_settings()
    assert {one.table for one in listed} == {table.name for table in fields(Settings)}
    assert 150 < len(listed) < 220
    for one in listed:
        assert one.meaning
        assert one.meaning[0].islower() or one.meaning.split()[0].strip(",").isupper()
        is_number = one.default.replace("_", "").replace(".", "").isdigit()
        assert one.unit or not is_number or "temperature" in one.key or one.key == "ewma_decay", one


def test_the_page_of_settings_is_the_listed_one() -> None:
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == settings_page() + "\n"


def test_a_constant_leaves_the_digest_of_the_settings_as_it_was() -> None:
    assert settings_digest(Settings()) == DIGEST
    assert digest_of(encode_settings(Settings(), earlier_names=True)) == EARLIER_DIGEST


def test_settings_under_their_earlier_names_are_read_as_those_of_today() -> None:
    settings = Settings()
    for old, _ in EARLIER:
        table, key, value = changed(old)
        settings = override(settings, table, **{key: value})
    earlier = encode_settings(settings, earlier_names=True)
    shaping = decode_settings(encode_settings(settings))
    assert decode_settings(earlier) == shaping != Settings()
    stated = json.loads(earlier)
    assert {"secure", "buffering"} < set(stated)
    assert not {"suspicion", "prefetching"} & set(stated)
    assert "lookahead" in stated["decoding"]


def test_a_run_keeps_the_names_that_its_file_was_begun_with() -> None:
    earlier, today = encode_settings(Settings(), earlier_names=True), encode_settings(Settings())
    assert settings_to_record(Settings(), earlier) == earlier
    assert settings_to_record(Settings(), None) == today
    assert settings_to_record(Settings(), today) == today
    assert settings_to_record(Settings(), earlier + b" ") == today  # not what any version wrote
    other = override(Settings(), "policy", max_band_width=0.1)
    assert settings_to_record(other, earlier) == encode_settings(other)


@pytest.mark.parametrize(("old", "new"), EARLIER)
def test_an_earlier_name_in_a_file_or_the_environment_works_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    table, key, value = changed(old)
    wanted = override(Settings(), table, **{key: value})
    assert wanted != Settings()
    earlier_table, _, earlier_key = old.partition(".")
    file = tmp_path / "settings.toml"
    file.write_text(f"[{earlier_table}]\n{earlier_key} = {as_toml(value)}\n")
    assert load_settings(file, {}) == wanted
    variable = f"HTFI_{earlier_table}__{earlier_key}".upper()
    assert load_settings(None, {variable: as_toml(value)}) == wanted
    assert capfd.readouterr() == ("", "")
    file.write_text(
        f"[{table}]\n{key} = {as_toml(value)}\n[{earlier_table}]\n{earlier_key} = {as_toml(value)}\n"
    )
    if table != earlier_table:
        with pytest.raises(InvalidInput, match=rf"{new} is given twice, once by an earlier name: keep one"):
            load_settings(file, {})


def test_a_setting_under_both_of_its_names_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[decoding]\nlookahead = 'fixed'\ndraft_length = 'fixed'\n")
    with pytest.raises(InvalidInput, match=r"decoding\.draft_length is given twice, once by an earlier name"):
        load_settings(file, {})


def test_every_earlier_name_leads_to_a_setting() -> None:
    listed = {f"{one.table}.{one.key}" for one in list_settings()}
    assert {new for _, new in EARLIER} <= listed
    assert not {old for old, _ in EARLIER} & listed


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[trading.instruments.AAA]\ntik = "0.01"',
            r"trading\.instruments\.AAA: unknown key 'tik': .* 'tick'\?",
        ),
        (
            '[order_limits.by_scope."desk:a"]\nmax_value = 1',
            r"order_limits\.by_scope\.desk:a: .*max_order_value",
        ),
        ("[venue.by_name.XNYS]\ntake_fee = 1", r"venue\.by_name\.XNYS: .*did you mean 'take_fee_bps'\?"),
        ('[cluster.nodes.a]\nadress = "b"', r"cluster\.nodes\.a: .*did you mean 'address'\?"),
        ('[[sanitiser.publishers]]\nname = "a"\nurl = "b"', r"sanitiser\.publishers\[1\]: unknown key 'url'"),
        ("[tradin]\ncapital = 1", r"unknown table 'tradin': .*did you mean 'trading'\?"),
        ("[trading]\ncapitl = 1", r"trading: unknown key 'capitl': .*did you mean 'capital'\?"),
    ],
)
def test_an_unknown_key_anywhere_in_a_file_stops_the_start_with_its_path_and_the_nearest(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words) as refused:
        load_settings(file)
    assert str(refused.value).startswith(f"{file}: ")


def test_settings_that_an_old_file_does_not_name_have_their_defaults() -> None:
    tables = json.loads(encode_settings(Settings()))
    del tables["policy"]["max_band_width"]
    del tables["suspicion"]
    assert decode_settings(msgspec.json.encode(tables)) == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[health]\nnum_probed = 4", r"health\.num_probed is not a setting: it is fixed at 3; remove it"),
        ("[narrative]\nmin_weight = 0.5", r"narrative\.min_weight is not a setting: it is fixed at 0\.125"),
        ("[server]\nnode = 'a'", "unknown key 'node'"),
    ],
)
def test_a_constant_in_a_settings_file_stops_the_start_with_its_value(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        load_settings(file)

"""Entries of versions 2 to 4: exact, canonical, refused where they are none, and laid out as docs/record.md says."""

import json
import math
import re
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htfi.domain.decision import Decision, DecisionTrigger, decode_decision, encode_decision
from htfi.domain.errors import IntegrityError
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.domain.plan import PlanReason
from htfi.narrative.rationale.versions import PHRASINGS
from htfi.narrative.rationale.writer import SLOT_ORDER
from htfi.pipeline.record import plain, ticks
from htfi.pipeline.record.entry import (
    PACKED_APART,
    decode_entry,
    encode_entry,
    encode_like,
    entry_id,
    entry_json,
    has_reading,
)
from htfi.pipeline.record.ticks import pack_rows, pack_scaled, unpack_rows
from htfi.pipeline.record.words import WORDS
from htfi.wiring.ledger import open_ledger
from record_layout import layout

ROOT = Path(__file__).parents[2]


def in_version(version: int) -> Callable[[Decision], bytes]:
    return lambda decision: encode_entry(decision, version)


IN_VERSIONS = [in_version(version) for version in WORDS]


@pytest.mark.parametrize("encode", IN_VERSIONS)
def test_a_decision_comes_out_as_it_went_in(make_decisions, encode):
    decisions = make_decisions(40, ("SPX", "VIX"), withhold_every=7)
    entries = [encode(decision) for decision in decisions]
    assert [decode_entry(entry) for entry in entries] == decisions
    assert [entry_json(entry) for entry in entries] == [encode_decision(decision) for decision in decisions]
    assert [encode(decode_entry(entry)) for entry in entries] == entries


def test_each_version_is_shorter(make_decisions):
    decisions = make_decisions(40)
    sizes = [sum(len(encode_entry(one, version)) for one in decisions) for version in WORDS]
    assert sizes[1] < 0.94 * sizes[0]
    assert sizes[2] <= sizes[1]


def test_tables_about_a_move_take_hardly_more_than_about_zero(make_decisions):
    (decision,) = make_decisions(1)
    num = len(decision.forecast.levels)
    about_zero = [[(place - num // 2) * 10**7 + place // num for place in range(num)]]
    sizes = {}
    for version in WORDS:
        for move in (0, 123_457):
            ticks = {"ewma": [[one + move for one in row] for row in about_zero] * 3}
            forecast = msgspec.structs.replace(decision.forecast, expert_ticks=ticks)
            entry = encode_entry(msgspec.structs.replace(decision, forecast=forecast), version)
            assert decode_entry(entry).forecast.expert_ticks == ticks
            sizes[version, move] = len(entry)
    assert sizes[3, 123_457] > sizes[3, 0] + 50
    assert sizes[4, 123_457] <= sizes[4, 0] + 8


def test_an_entry_of_version_1_is_read_and_compared_in_its_own_form(make_decisions):
    (decision,) = make_decisions(1)
    recorded = encode_decision(decision)
    assert decode_entry(recorded) == decode_decision(recorded)
    assert encode_like(decision, recorded) == recorded
    for version in WORDS:
        assert encode_like(decision, encode_entry(decision, version)) == encode_entry(decision, version)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_in_one_line(make_decisions, number):
    (decision,) = make_decisions(1)
    with pytest.raises(IntegrityError, match=r"SPX/1d@.*not finite") as caught:
        encode_entry(msgspec.structs.replace(decision, last_price=number))
    assert "\n" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    cut=st.floats(0, 1), place=st.floats(0, 1), byte=st.integers(0, 255), encode=st.sampled_from(IN_VERSIONS)
)
def test_damaged_bytes_are_refused_or_another_decision(make_decisions, cut, place, byte, encode):
    (decision,) = make_decisions(1)
    entry = encode(decision)
    with pytest.raises(msgspec.DecodeError):
        decode_entry(entry[: int(cut * (len(entry) - 1))] or b"\xc1")
    changed = bytearray(entry)
    changed[int(place * (len(entry) - 1))] = byte
    try:
        found = decode_entry(bytes(changed))
    except msgspec.DecodeError:
        return
    assert bytes(changed) == entry or found != decision or encode(found) != bytes(changed)


def test_a_later_version_is_named(make_decisions):
    entry = bytearray(encode_entry(*make_decisions(1)))
    entry[1] = 5
    with pytest.raises(msgspec.ValidationError, match="version 5, this program knows up to 4: update htfi"):
        decode_entry(bytes(entry))


def variants(decision: Decision) -> list[Decision]:
    """The decision with each form of id that entries leave out, and with one that they spell."""
    replace, name = msgspec.structs.replace, decision.id
    news = replace(decision, id=f"{name}/news", trigger=DecisionTrigger.NEWS)
    return [
        decision,
        replace(decision, id=f"{name}/amended", amends=name),
        news,
        replace(news, id=f"{name}/news/amended", amends=news.id),
        replace(decision, id="another"),
        replace(decision, id=decision.settings_digest),
        replace(decision, symbol="A", id=f"A/1d@{name.partition('@')[2]}"),
        replace(decision, symbol="edge", interval="edge", id=f"edge/edge@{name.partition('@')[2]}"),
    ]


@pytest.mark.parametrize("encode", [encode_decision, *IN_VERSIONS])
def test_the_id_is_read_without_the_rest(make_decisions, encode):
    decisions = variants(*make_decisions(1))
    entries = [encode(decision) for decision in decisions]
    assert [entry_id(entry) for entry in entries] == [decision.id for decision in decisions]
    assert [decode_entry(entry).id for entry in entries] == [decision.id for decision in decisions]
    strange = (b"", b"{}", b"{", b"\x96", b"\x93\x01\x02\x03", b"\x96\x05\x90\x90\x90\x90\xc0", b"words")
    assert [entry_id(entry) for entry in strange] == [None] * len(strange)


@pytest.mark.parametrize("encode", [encode_decision, *IN_VERSIONS])
def test_a_reading_is_found_without_the_rest(make_decisions, encode):
    (decision,) = make_decisions(1)
    trace = GenerationTrace("target", "draft", "chain", 1, 1.0, 1, (1, 2), (3,), ())
    view = NewsView(0.5, 1.0, 1.0, 0.5, (), decision.as_of_ns, 10**9)
    replace = msgspec.structs.replace
    asked = [
        replace(decision, view=None),
        replace(decision, view=view),
        replace(decision, view=replace(view, trace=trace)),
    ]
    assert [has_reading(encode(one)) for one in asked] == [False, False, True]
    assert not any(has_reading(strange) for strange in (b"", b"{}", b"\x96", b"\x93\x01\x02\x03", b"words"))


VERSIONS = st.sampled_from(list(WORDS))
MIDDLES = st.just(0) | st.integers(-(2**60), 2**60)
ROWS = st.integers(1, 15).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(-(2**60), 2**60), min_size=width, max_size=width), min_size=1, max_size=6
    )
)


@given(rows=ROWS, mirrored=st.booleans(), rising=st.booleans(), middle=MIDDLES, version=VERSIONS)
def test_rows_of_whole_numbers_come_out_as_they_went_in(rows, mirrored, rising, middle, version):
    if rising:
        rows = [sorted(row) for row in rows]
    if mirrored:
        rows = [[(one - other) // 2 for one, other in zip(row, reversed(row), strict=True)] for row in rows]
        rows = [row if row == [-one for one in reversed(row)] else [0] * len(row) for row in rows]
        rows = [[(one + middle) // 2 for one in row] for row in rows]
    width = len(rows[0])
    packed = pack_rows(array("q", [one for row in rows for one in row]), width, version)
    assert unpack_rows(packed, width, version) == rows
    if mirrored and middle == 0 and version == 2:
        assert len(packed) <= len(rows) * (1 + 8 * ((width + 1) // 2))


def test_a_row_in_bits_is_what_the_page_says():
    rising = pack_rows(array("q", [-3, 1, 2, 2, 9]), 5, 4)
    assert int.from_bytes(rising, "little") == (
        0b10 | 3 << 2 | 3 << 8 | 5 << 14 | 4 << 17 | 1 << 20 | 0 << 23 | 7 << 26
    )
    mirrored = pack_rows(array("q", [-7, -1, 0, 1, 7]), 5, 4)
    assert int.from_bytes(mirrored, "little") == 0b11 | 0 << 2 | 3 << 8 | 1 << 14 | 6 << 17
    about_two = pack_rows(array("q", [-5, 1, 2, 3, 9]), 5, 4)
    assert int.from_bytes(about_two, "little") == 0b11 | 3 << 2 | 3 << 8 | 4 << 14 | 1 << 17 | 6 << 20
    before = pack_rows(array("q", [-5, 1, 2, 3, 9]), 5, 3)
    assert before[0] & 0b11 == 0b10
    falling = pack_rows(array("q", [4, 1, 3]), 3, 4)
    assert int.from_bytes(falling, "little") == 0b00 | 4 << 2 | 3 << 8 | 8 << 14 | 5 << 18 | 4 << 21
    assert [len(one) for one in (rising, mirrored, falling)] == [4, 3, 3]


@given(numbers=st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=13), version=VERSIONS)
def test_numbers_are_packed_only_where_they_are_exact(numbers, version):
    packed = pack_scaled(array("d", numbers), 1e6, len(numbers), version)
    if packed is not None:
        back = [one / 1e6 for one in unpack_rows(packed, len(numbers), version)[0]]
        assert [repr(one) for one in back] == [repr(one) for one in numbers]
    exact = array("d", [round(one, 6) + 0.0 for one in numbers])
    assert pack_scaled(exact, 1e6, len(numbers), version) is not None


def interpreted_module(name: str) -> dict[str, Any]:
    source = (ROOT / f"src/htfi/pipeline/record/{name}.py").read_text(encoding="utf-8")
    interpreted: dict[str, Any] = {"__file__": f"{name}.py", "__name__": "interpreted"}
    exec(compile(source, f"{name}.py", "exec"), interpreted)
    return interpreted


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**8), 10**8).map(
    lambda n: n / 1e3
)


@given(number=FLOATS)
def test_a_float_is_packed_as_thousandths_where_these_are_exact(number):
    packed = plain.pack_float(number)
    interpreted = interpreted_module("plain")["pack_float"](number)
    assert (type(interpreted), repr(interpreted)) == (type(packed), repr(packed))
    back = packed / 1000.0 if isinstance(packed, int) else packed
    assert repr(back) == repr(number)
    thousandths = round(number * 1e3) if abs(number) < 2e6 else None
    is_exact = thousandths is not None and repr(thousandths / 1e3) == repr(number)
    assert isinstance(packed, int) == is_exact or abs(number) >= 2e6


def test_texts_are_spelled_once_compiled_or_not():
    places = (plain.TextPlaces({"known": 0}), interpreted_module("plain")["TextPlaces"]({"known": 0}))
    told = ["known", "to", "to", "spelled", "spelled", "ab" * 32, "ab" * 32, "AB" * 32]
    packed = [[one.pack(text) for text in told] for one in places]
    assert packed[0] == packed[1] == [0, "to", "to", "spelled", 1, b"\xab" * 32, 2, "AB" * 32]
    assert places[0].places() == places[1].places() == {"known": 0, "spelled": 1, "ab" * 32: 2, "AB" * 32: 3}
    features = {"spelled": 0.5, "rest": 1.0 / 3.0}
    assert plain.pack_floats(features, places[0]) == [1, 500, "rest", 1.0 / 3.0]
    spelled = plain.SpelledTexts(["known"])
    assert [spelled.unpack(one) for one in packed[0]] == told


@pytest.mark.parametrize("version", WORDS)
def test_the_interpreted_module_packs_the_same_bytes(version):
    interpreted = interpreted_module("ticks")
    assert ticks.COMPILED or ticks.pack_rows.__module__ == "htfi.pipeline.record.ticks"
    for width in (1, 2, 13):
        signed = [(-1) ** n * n**9 for n in range(6 * width)]
        values = array("q", [*signed, *range(-width, width), *[0] * width, *sorted(signed)])
        assert interpreted["pack_rows"](values, width, version) == pack_rows(values, width, version)
        floats = array("d", [value / 1e10 for value in values])
        assert interpreted["pack_scaled"](floats, 1e10, width, version) == pack_scaled(
            floats, 1e10, width, version
        )


@given(packed=st.binary(max_size=60), width=st.integers(1, 7), version=VERSIONS)
def test_any_bytes_are_a_table_or_refused_compiled_or_not(packed, width, version):
    interpreted = interpreted_module("ticks")

    def read(unpack, *scale):
        try:
            return unpack(packed, *scale, width, version)
        except ValueError as error:
            return str(error)

    found = read(unpack_rows)
    assert read(interpreted["unpack_rows"]) == found
    scaled = found if isinstance(found, str) else [[one / 1e10 for one in row] for row in found]
    assert read(ticks.unpack_scaled, 1e10) == read(interpreted["unpack_scaled"], 1e10) == scaled


def test_the_page_states_the_layout():
    page = (ROOT / "docs/record.md").read_text(encoding="utf-8")
    assert layout() in page, (
        "docs/record.md differs from the types: fields and members are added at the end only"
    )
    for version, known in WORDS.items():
        more = known[len(WORDS.get(version - 1, ())) :]
        assert f"`{'` `'.join(more)}`" in page, f"the known texts of version {version} may not change"
    assert ", ".join(f"`{slot}`" for slot in SLOT_ORDER) in page
    for version, phrasing in PHRASINGS.items():
        parts = [*phrasing.sentences.openings, *phrasing.sentences.parts]
        assert f"| `{version}` | {', '.join(parts)} |" in page


@pytest.mark.parametrize("encode", IN_VERSIONS)
def test_the_independent_reader_reads_a_ledger(tmp_path, make_decisions, encode):
    decisions = make_decisions(3)
    forecast = decisions[2].forecast
    num = len(forecast.levels)
    moved = [[0.0012 + (place - num // 2) / 1e3 for place in range(num)] for _ in forecast.horizons]
    rows = [[round(one, 10) for one in row] for row in moved]
    decisions[2] = msgspec.structs.replace(
        decisions[2], forecast=msgspec.structs.replace(forecast, quantiles=rows)
    )
    ledger = open_ledger(tmp_path, origin="htfi.example/run", durable=False)
    ledger.append([encode(decision) for decision in decisions])
    ledger.close()
    words = [sys.executable, "-I", str(ROOT / "examples/read_record.py"), str(tmp_path / "ledger.db"), "2"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "'symbol': 'SPX'" in told
    for level, one in zip(forecast.levels, rows[0], strict=True):
        assert f"{100 * level:g}% {100 * one:+.4f}%" in told
    gone = subprocess.run([*words[:-1], "3"], capture_output=True, text=True, check=False, timeout=60)
    assert (gone.returncode, gone.stderr) == (1, f"{tmp_path}/ledger.db: no entry 3\n")


def test_the_independent_reader_names_every_field_of_a_decision():
    source = (ROOT / "examples/read_record.py").read_text(encoding="utf-8")
    names = re.findall(r'"(\w+)"', source.partition("FIELDS = (")[2].partition(")")[0])
    fields = [one.name for one in msgspec.structs.fields(Decision) if one.name not in PACKED_APART]
    assert names == fields


def test_what_may_be_none_and_the_tilt_are_on_the_page():
    assert "**NewsTilt**" in layout()
    assert "| 9 | view | NewsView | none |" in layout()


def test_reasons_are_places(make_decisions):
    (decision,) = make_decisions(1)
    plan = msgspec.structs.replace(
        decision.plan, legacy_reason_text=msgspec.UNSET, reason_codes=(PlanReason.TRIAL,)
    )
    entry = encode_entry(msgspec.structs.replace(decision, plan=plan))
    assert b"trial" not in entry
    assert json.loads(entry_json(entry))["plan"]["reasons"] == ["trial"]

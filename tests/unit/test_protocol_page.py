"""docs/protocol.md is what the code does: frames and their fields, examples to the byte, sizes, arithmetic."""

import json
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from htfi.decoding.link import frames
from htfi.decoding.link.frames import (
    AcceptedFrame,
    CancelFrame,
    DraftMode,
    DraftWindowFrame,
    Frame,
    NeedFrame,
    OpenFrame,
    RefusalReason,
    decode,
    encode,
    pack,
    prefix_hash,
    seal,
    unseal,
)
from htfi.decoding.link.parts import MAX_PART_BYTES, encode_grammar, part_name, request_name
from htfi.decoding.sampling import SamplingParams
from htfi.domain.generation import (
    ChoiceField,
    ControlToken,
    FixedField,
    FreeTextField,
    PlainText,
    ScaledMoves,
)

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
TYPES = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    bytes: "bin",
    tuple[str, ...]: "array of str",
    tuple[bytes, ...]: "array of bin",
}
NAME = bytes(range(16))
GUESSES = pack(range(300, 316))
GRPC_BYTES, UPDATES_BYTES, TLS_BYTES = 5 + 9, 2 * 13, 5 + 1 + 16
MEGABITS = 100e6 / 8  # bytes a second
WIDE = 128_000


def spaced(data: bytes) -> str:
    return data.hex(" ")


def rows_after(heading: str) -> list[list[str]]:
    """The body of the first table after a heading."""
    text = PAGE[PAGE.index(heading) :]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    return rows[2:]


@pytest.mark.parametrize("frame", get_args(Frame), ids=lambda frame: frame.__name__)
def test_the_page_has_each_frames_tag_and_fields_in_order(frame):
    tag = frame.__struct_config__.tag
    told = [(row[0], row[1]) for row in rows_after(f"### {tag} `{frame.__name__.removesuffix('Frame')}`")]
    hints = get_type_hints(frame)
    assert told == [(name, TYPES[hints[name]]) for name in frame.__struct_fields__]


def test_the_page_has_all_refusals_and_leads():
    assert [(int(row[0]), row[1]) for row in rows_after("## Refusals")] == [
        (int(why), why.name) for why in RefusalReason
    ]
    told = next(row[2] for row in rows_after("### 5 `Open`") if row[0] == "draft_mode")
    assert told == ", ".join(f"{int(lead)} {lead.name}" for lead in DraftMode)


def test_packed_ids_and_names_are_those_of_the_page():
    packed = {row[0]: row[1] for row in rows_after("### Token ids are packed")}
    assert packed == {
        "none": "",
        "1, 2, 300": f"`{spaced(pack([1, 2, 300]))}`",
        "1, 65536": f"`{spaced(pack([1, 65536]))}`",
    }
    assert f"Hash of 1, 2, 300: `{prefix_hash([1, 2, 300]):#010x}`" in PAGE
    assert prefix_hash([300], prefix_hash([1, 2])) == prefix_hash([1, 2, 300])
    part = part_name(pack([1, 2, 300]))
    request = request_name((part,), part_name(b"form"), 49, SamplingParams(1.0, 0, 1.0))
    assert [row[1] for row in rows_after("### Names")] == [f"`{part.hex()}`", f"`{request.hex()}`"]
    assert f"`{1.0!r}`, `{0.35!r}`, `{1e-5!r}`" in PAGE


def test_the_frames_written_out_are_the_codes():
    before, after = prefix_hash([1, 2, 300]), prefix_hash([1, 2, 300, 17, 19])
    assert f"DraftWindow {spaced(encode(DraftWindowFrame(7, 2, 3, before, pack([17, 18]))))}\n" in PAGE
    assert f"Accepted    {spaced(encode(AcceptedFrame(7, 2, 3, after, 1, False, pack([17, 19]))))}\n" in PAGE


def test_a_form_is_written_as_the_page_says():
    form = (
        FixedField((ControlToken("news"), PlainText("up"))),
        ChoiceField("way", ((PlainText("a"),), (ScaledMoves((1.5,)),))),
        FreeTextField("why", 9, ControlToken("end"), (ControlToken("size"),)),
    )
    assert msgspec.msgpack.decode(encode_grammar(form)) == [
        [0, [[0, "news"], [1, "up"]]],
        [1, "way", [[[1, "a"]], [[2, [1.5]]]]],
        [2, "why", 9, [0, "end"], [[0, "size"]]],
    ]


def test_bounds_of_frames_and_parts_are_those_of_the_page():
    for bound in (frames.MAX_FRAME_BYTES, frames.PART_BYTES, MAX_PART_BYTES):
        assert f"{bound:,}" in PAGE


def test_a_round_costs_what_the_page_says():
    prefix = 1 << 31
    window = len(encode(DraftWindowFrame(7, 2, 40, prefix, GUESSES))) - len(GUESSES)
    settled = len(encode(AcceptedFrame(7, 2, 40, prefix, 16, False, GUESSES))) - len(GUESSES)
    sums = [window + settled]
    for each in (GRPC_BYTES, UPDATES_BYTES, TLS_BYTES):
        sums.append(sums[-1] + 2 * each)
    told = [[int(cell.strip("*")) for cell in row[1:]] for row in rows_after("## What a round costs")]
    added = ((window, settled), *[(each, each) for each in (GRPC_BYTES, UPDATES_BYTES, TLS_BYTES)])
    assert told == [[*pair, total] for pair, total in zip(added, sums, strict=True)]
    assert f"What we add is {sums[0]}, and with its framing {sums[1]}." in PAGE
    for one, grown in ((128, 1), (256, 2)):
        assert len(encode(CancelFrame(one, 2))) == len(encode(CancelFrame(7, 2))) + grown
    assert f"16 guesses are {len(GUESSES)} bytes" in PAGE
    assert f"{len(pack(range(70_000, 70_016)))} where ids need 3" in PAGE
    assert (
        f"`Cancel` takes {len(encode(CancelFrame(7, 2)))} bytes, a `Need` {len(encode(NeedFrame(NAME, 0)))}"
        in PAGE
    )
    opened = OpenFrame(7, NAME, 1, (NAME, NAME), NAME, 49, 1.0, 0, 1.0, "view", 250, 3, 1 << 20, (), b"")
    assert f"an `Open` of two parts without guesses {len(encode(opened))}" in PAGE


def test_what_features_and_laws_would_cost_is_worked_out_right():
    shape = json.loads(files("htfi.models").joinpath("mini-target", "config.json").read_text())
    bits = math.log2(math.comb(WIDE, 8)) + math.log2(math.comb(100 + 7, 7))
    ids, far_ids = pack(range(16)), pack(range(70_000, 70_016))
    expected = {
        "ids, a vocabulary below 65,536 (2 bytes)": ("2 B", len(ids)),
        "ids, V = 128,000 (3 bytes; 17 bits would do)": ("3 B", len(far_ids)),
        "the draft's distribution, 8 likeliest tokens, rounded to hundredths": (
            f"{bits:.0f} bit",
            16 * round(bits) / 8,
        ),
        f"features of our target: {shape['hidden_size']} wide, 3 layers, fp16": _of(
            shape["hidden_size"] * 2 * 3
        ),
        "features of an 8B target: 4,096 wide, 1 layer, fp16": _of(4096 * 2),
        "the same, 3 layers (EAGLE-3)": _of(4096 * 2 * 3),
        "the draft's whole distribution, V = 128,000, fp16": _of(WIDE * 2),
    }
    told = rows_after("What would have to cross it otherwise")
    assert [row[0] for row in told] == list(expected)
    for (_, a_token, window, time), (token_bytes, num_bytes) in zip(told, expected.values(), strict=True):
        assert (a_token, window) == (token_bytes, f"{num_bytes:,.0f} B")
        stated = float(time.removesuffix(" ms"))
        assert stated == pytest.approx(1e3 * num_bytes / MEGABITS, rel=0.05 if stated >= 0.01 else 0.2)
    assert math.ceil(math.log2(WIDE)) == 17
    prompt_bytes = 90 * 4096 * 2 * 3
    assert f"{prompt_bytes / 1e6:.1f} MB, {1e3 * prompt_bytes / MEGABITS:.0f} ms" in PAGE


def _of(num_bytes: int) -> tuple[str, int]:
    return f"{num_bytes:,} B", 16 * num_bytes


@pytest.mark.parametrize(
    "frame", [CancelFrame(7, 2), AcceptedFrame(7, 2, 0, 1, 0, True, b""), DraftWindowFrame(7, 2, 0, 1, b"")]
)
def test_a_frame_that_has_grown_at_its_end_is_understood(frame):
    _, body = unseal(encode(frame))
    grown = msgspec.msgpack.encode([*msgspec.msgpack.decode(body), "of a later release", [1, 2]])
    assert decode(unseal(seal(frames.FrameChannel.LINK, grown))[1]) == frame

"""Bytes into FIX messages and back: frames, garbled messages, data fields, and what the dictionary refuses."""

import pytest

from fix_peer import order_fields
from htfi.domain.errors import InvalidInput
from htfi.execution.fix.checking import MessageFault, RejectReason, check_message, entries
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import FixMessage, Garbled, decode, encode
from htfi.execution.fix.timestamps import format_timestamp, parse_timestamp

FIX44 = load_dictionary("FIX44")
HEADER = [(34, "2"), (49, "HTFI"), (52, "20231114-22:13:20.000"), (56, "VENUE")]


def order(body: list[tuple[int, str]], header: list[tuple[int, str]] = HEADER, kind: str = "D") -> FixMessage:
    message = decode(raw(kind, [*header, *body]), FIX44)
    assert isinstance(message, FixMessage)
    return message


def raw(kind: str, fields: list[tuple[int, str]], begin: str = "FIX.4.4") -> bytes:
    """Bytes of fields that `encode` would refuse."""
    body = f"35={kind}\x01" + "".join(f"{tag}={value}\x01" for tag, value in fields)
    head = f"8={begin}\x019={len(body.encode('latin-1'))}\x01{body}".encode("latin-1")
    return head + b"10=%03d\x01" % (sum(head) % 256)


def fault_of(
    body: list[tuple[int, str]], header: list[tuple[int, str]] = HEADER, kind: str = "D"
) -> MessageFault | None:
    return check_message(order(body, header, kind), FIX44, allow_user_fields=False)


def test_message_is_read_as_it_was_written() -> None:
    frame = encode("FIX.4.4", "D", HEADER, order_fields("O1"))
    message = decode(frame, FIX44)
    assert isinstance(message, FixMessage)
    assert message.fields[3:-1] == [*HEADER, *order_fields("O1")]
    assert (message.msg_type, message.sequence, message.frame) == ("D", 2, frame)
    assert check_message(message, FIX44, allow_user_fields=False) is None


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"9=", b"9=1", "BodyLength (9) is 1"),
        (b"9=", b"9=+", "BodyLength (9) is +"),
        (b"\x0135=D", b"\x0134=D", "does not begin with"),
        (b"8=FIX", b"9=FIX", "does not begin with"),
        (b"\x0155=", b"\x01x5=", "'x5=IBM"),
        (b"\x0155=", b"\x01055=", "'055=IBM"),
        (b"\x0155=", b"\x0155\x01=", "which is no tag"),
        (b"\x0155=", "\x01٥٥=".encode(), "which is no tag"),
    ],
)
def test_garbled_message_says_why(old: bytes, new: bytes, why: str) -> None:
    frame = encode("FIX.4.4", "D", HEADER, order_fields("O1"))[:-7].replace(old, new, 1)
    length = frame.index(b"\x0135=") + 1 if b"\x0135=" in frame else 16
    if old not in (b"9=", b"8=FIX"):
        body = frame[frame.index(b"\x01", frame.index(b"9=")) + 1 :]
        frame = b"8=FIX.4.4\x019=%d\x01" % len(body) + body
    assert length
    found = decode(frame + b"10=%03d\x01" % (sum(frame) % 256), FIX44)
    assert isinstance(found, Garbled)
    assert why in found.why


@pytest.mark.parametrize("end", [b"10=000\x01", b"10=1\x01", b"10=999\x01", b"", b"\x01"])
def test_wrong_checksum_is_garbled(end: bytes) -> None:
    frame = encode("FIX.4.4", "D", HEADER, order_fields("O1"))
    assert frame[-7:] != b"10=000\x01"
    assert isinstance(decode(frame[:-7] + end, FIX44), Garbled)


def test_data_field_may_contain_the_delimiter() -> None:
    message = order([*order_fields("O1"), (354, "5"), (355, "a\x01b=c"), (58, "after")])
    assert message.get(355) == "a\x01b=c"
    assert message.get(58) == "after"
    wrong = decode(raw("D", [*HEADER, (354, "4"), (355, "a\x01b=c")]), FIX44)
    assert isinstance(wrong, Garbled)


@pytest.mark.parametrize("size", [1, 2, 7, 40, 1000])
def test_frames_come_out_whole_however_the_bytes_arrive(size: int) -> None:
    frames = [encode("FIX.4.4", "D", HEADER, order_fields(f"O{n}")) for n in range(5)]
    data, rest, found = b"".join(frames), b"", []
    for start in range(0, len(data), size):
        new, rest = split_frames(rest + data[start : start + size], 1 << 20)
        found += new
    assert (found, rest) == (frames, b"")


def test_noise_between_frames_is_a_frame_of_its_own() -> None:
    frame = encode("FIX.4.4", "0", HEADER, [])
    found, rest = split_frames(
        b"noise" + frame + b"8=FIX.4.4\x0110=1\x01" + b"x" * 40 + frame + b"8=F", 1 << 20
    )
    assert found == [b"noise", frame, b"8=FIX.4.4\x0110=1\x01" + b"x" * 40, frame]
    assert rest == b"8=F"


def test_huge_length_does_not_hold_up_what_follows() -> None:
    frame = encode("FIX.4.4", "0", HEADER, [])
    found, rest = split_frames(b"8=FIX.4.4\x019=999999999\x0135=0\x01" + frame, 1 << 20)
    assert found[-1] == frame
    assert rest == b""


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "has no value"), ("a\x01b", "contains SOH"), ("Zürich", "is not ASCII")],
)
def test_value_that_would_break_a_message_is_not_sent(value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        encode("FIX.4.4", "D", HEADER, [(11, "O1"), (58, value)])


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([], None),
        ([(58, "text"), (100, "XNYS")], None),
        ([(18, "1 2 G")], None),
        ([(18, "1 2 ?")], MessageFault(RejectReason.VALUE_OUT_OF_RANGE, 18)),
        ([(58, "Zürich")], MessageFault(RejectReason.INCORRECT_FORMAT, 58)),
        ([(59, "x")], MessageFault(RejectReason.VALUE_OUT_OF_RANGE, 59)),
        ([(59, "00")], MessageFault(RejectReason.INCORRECT_FORMAT, 59)),
        ([(99, "1e5")], MessageFault(RejectReason.INCORRECT_FORMAT, 99)),
        ([(99, "NaN")], MessageFault(RejectReason.INCORRECT_FORMAT, 99)),
        ([(99, "9" * 200)], MessageFault(RejectReason.INCORRECT_FORMAT, 99)),
        ([(126, "20230231-00:00:00")], MessageFault(RejectReason.INCORRECT_FORMAT, 126)),
        ([(126, "20231114-24:00:00")], MessageFault(RejectReason.INCORRECT_FORMAT, 126)),
        ([(15, "DOLLAR")], MessageFault(RejectReason.INCORRECT_FORMAT, 15)),
        ([(114, "X")], MessageFault(RejectReason.INCORRECT_FORMAT, 114)),
        ([(432, "20231340")], MessageFault(RejectReason.INCORRECT_FORMAT, 432)),
        ([(58, "")], MessageFault(RejectReason.WITHOUT_VALUE, 58)),
        ([(11, "twice")], MessageFault(RejectReason.REPEATED_TAG, 11)),
        ([(35, "D")], MessageFault(RejectReason.REPEATED_TAG, 35)),
        ([(34, "3")], MessageFault(RejectReason.REPEATED_TAG, 34)),
        ([(115, "late")], MessageFault(RejectReason.OUT_OF_ORDER, 115)),
        ([(93, "1"), (89, "x"), (58, "late")], MessageFault(RejectReason.OUT_OF_ORDER, 58)),
        ([(31, "1")], MessageFault(RejectReason.NOT_DEFINED_FOR_TYPE, 31)),
        ([(99999, "1")], MessageFault(RejectReason.INVALID_TAG, 99999)),
        ([(453, "1"), (448, "me"), (447, "D"), (452, "3")], None),
        ([(453, "2"), (448, "me"), (447, "D"), (452, "3"), (448, "you"), (802, "1"), (523, "desk"), (803, "5")], None),
        ([(453, "2"), (448, "me"), (447, "D"), (452, "3")], MessageFault(RejectReason.GROUP_COUNT, 453)),
        ([(453, "1"), (448, "me"), (448, "you")], MessageFault(RejectReason.GROUP_COUNT, 453)),
        ([(453, "0")], None),
        ([(453, "-1")], MessageFault(RejectReason.INCORRECT_FORMAT, 453)),
        ([(453, "999999999")], MessageFault(RejectReason.GROUP_COUNT, 453)),
        ([(453, "1"), (447, "D"), (448, "me")], MessageFault(RejectReason.GROUP_OUT_OF_ORDER, 447)),
        ([(453, "1"), (448, "me"), (447, "D"), (447, "D")], MessageFault(RejectReason.REPEATED_TAG, 447)),
        ([(453, "1"), (448, "me"), (447, "?")], MessageFault(RejectReason.VALUE_OUT_OF_RANGE, 447)),
        ([(453, "1"), (448, "")], MessageFault(RejectReason.WITHOUT_VALUE, 448)),
        ([(453, "1"), (448, "me"), (802, "2"), (523, "x")], MessageFault(RejectReason.GROUP_COUNT, 802)),
        ([(448, "me")], MessageFault(RejectReason.NOT_DEFINED_FOR_TYPE, 448)),
    ],
)  # fmt: skip
def test_dictionary_refuses_what_the_standard_does(
    changes: list[tuple[int, str]], fault: MessageFault | None
) -> None:
    assert fault_of([*order_fields("O1"), *changes]) == fault


def test_missing_fields_are_named_lowest_tag_first() -> None:
    without = [field for field in order_fields("O1") if field[0] not in (54, 40)]
    assert fault_of(without) == MessageFault(RejectReason.REQUIRED_TAG_MISSING, 40)
    assert fault_of(order_fields("O1"), HEADER[:2] + HEADER[3:]) == MessageFault(
        RejectReason.REQUIRED_TAG_MISSING, 52
    )


def test_type_of_the_standard_passes_with_its_header_alone_checked() -> None:
    assert fault_of([(148, "headline")], kind="B") is None
    assert fault_of([], [(34, "2"), (49, "HTFI"), (52, "now"), (56, "VENUE")], "B") == MessageFault(
        RejectReason.INCORRECT_FORMAT, 52
    )
    assert fault_of([], kind="ZZZ") == MessageFault(RejectReason.INVALID_MSG_TYPE)


def test_user_fields_pass_where_the_session_allows_them() -> None:
    message = order([*order_fields("O1"), (5001, "ours")])
    assert check_message(message, FIX44, allow_user_fields=True) is None
    assert check_message(message, FIX44, allow_user_fields=False) == MessageFault(
        RejectReason.INVALID_TAG, 5001
    )


def test_entries_of_a_group_are_read_apart() -> None:
    parties = [(453, "2"), (448, "me"), (452, "3"), (802, "1"), (523, "desk"), (448, "you"), (452, "12")]
    assert entries(order([*order_fields("O1"), *parties]), FIX44, 453) == [
        {448: "me", 452: "3", 802: "1", 523: "desk"},
        {448: "you", 452: "12"},
    ]
    assert entries(order(order_fields("O1")), FIX44, 453) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20231114-22:13:20", 1_700_000_000_000_000_000),
        ("20231114-22:13:20.123", 1_700_000_000_123_000_000),
        ("20231114-22:13:20.123456789", 1_700_000_000_123_456_789),
        ("20161231-23:59:60", 1_483_228_799_000_000_000),
        ("20231114-22:13:20.1", None),
        ("20231314-22:13:20", None),
        ("00000101-00:00:00", None),
        ("２0231114-22:13:20", None),
        ("", None),
    ],
)
def test_timestamps_are_read(text: str, expected: int | None) -> None:
    assert parse_timestamp(text) == expected


def test_timestamps_are_written_with_milliseconds() -> None:
    assert format_timestamp(1_700_000_000_123_999_999) == "20231114-22:13:20.123"


def test_unknown_dictionary_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no FIX dictionary 'FIX99'"):
        load_dictionary("FIX99")

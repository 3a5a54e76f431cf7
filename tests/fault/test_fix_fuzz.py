"""Malformed FIX messages, a million in the large run: refused by the rule, the session kept or ended, never an error.

What is garbled is judged by a second, plain reading of the standard. The rest must leave a session that is consistent:
what it answers passes the dictionary, and either it goes on with the next message or it has said why it ends.
"""

import random
import re

import pytest

from fix_peer import VENUE, order_fields
from htfi.domain.time import NS_PER_S
from htfi.execution.fix.checking import check_message
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.events import (
    Connected,
    ConnectionPhase,
    Deliver,
    Disconnect,
    ExpectNext,
    Received,
    Resend,
    ResetNumbers,
    SendMessage,
    SessionState,
)
from htfi.execution.fix.framing import split_frames
from htfi.execution.fix.messages import FixMessage, decode, encode
from htfi.execution.fix.session import advance
from htfi.execution.fix.timestamps import format_timestamp

NOW = 1_700_000_000 * NS_PER_S
FIX44 = load_dictionary("FIX44")
TIME = format_timestamp(NOW)
PARTIES = [
    (453, "2"),
    (448, "me"),
    (447, "D"),
    (452, "3"),
    (802, "1"),
    (523, "x"),
    (803, "5"),
    (448, "you"),
    (452, "12"),
]
BODIES: list[tuple[str, list[tuple[int, str]]]] = [
    ("D", [*order_fields("O1"), *PARTIES, (354, "5"), (355, "a\x01b=c")]),
    ("D", order_fields("O1")),
    ("F", [(41, "O1"), (11, "O2"), (55, "IBM"), (54, "1"), (60, TIME), (38, "100")]),
    ("W", [(55, "IBM"), (268, "2"), (269, "0"), (270, "1.5"), (271, "10"), (269, "1"), (270, "1.6"), (271, "5")]),
    ("0", [(112, "x")]),
    ("1", [(112, "x")]),
    ("2", [(7, "1"), (16, "0")]),
    ("3", [(45, "1"), (58, "no"), (373, "5")]),
    ("4", [(123, "Y"), (36, "9")]),
    ("4", [(36, "9")]),
    ("5", [(58, "bye")]),
    ("A", [(98, "0"), (108, "30")]),
    ("A", [(98, "0"), (108, "30"), (141, "Y")]),
    ("j", [(45, "1"), (372, "D"), (380, "3")]),
    ("B", [(148, "headline")]),
]  # fmt: skip
JUNK = [
    "", " ", "0", "-1", "1e9", "9" * 40, "NaN", "Y", "N", "*", "Zürich", "\x00", "=", "8=FIX.4.4", "A" * 5_000, TIME,
    "٣", "1.", ".", "+5", "00002", "99999999999999999999", "20230231-00:00:00", "20231114-22:13:60.123",
]  # fmt: skip
TAGS = [
    -1, 0, 1, 8, 9, 10, 34, 35, 36, 43, 49, 52, 56, 58, 89, 93, 95, 96, 97, 108, 115, 122, 123, 141, 268, 354, 355, 448,
    453, 627, 628, 802, 999, 4_999, 5_000, 99_999, 999_999_999,
]  # fmt: skip


def frame_of(kind: str, fields: list[tuple[int | str, str]], rng: random.Random) -> bytes:
    """Mostly with a right length and checksum: what is wrong then is within."""
    body = f"35={kind}\x01" + "".join(f"{tag}={value}\x01" for tag, value in fields)
    raw = body.encode("utf-8" if rng.random() < 0.1 else "latin-1", "replace")
    length = len(raw) + (rng.choice((-1, 1, 50, 10**8)) if rng.random() < 0.05 else 0)
    begin = rng.choice(("FIX.4.2", "FIXT.1.1", "FIX", "")) if rng.random() < 0.03 else "FIX.4.4"
    head = f"8={begin}\x019={length}\x01".encode() + raw
    checksum = sum(head) % 256 if rng.random() > 0.03 else rng.randrange(1_000)
    return head + b"10=%03d\x01" % checksum


def malformed(rng: random.Random) -> bytes:
    """A message with one to four mistakes, or bytes of one changed."""
    kind, body = rng.choice(BODIES)
    fields: list[tuple[int | str, str]] = [(34, "2"), (49, "HTFI"), (52, TIME), (56, "VENUE"), *body]
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(fields)) if fields else 0
        match rng.randrange(8):
            case 0 if fields:
                del fields[place]
            case 1 if fields:
                fields.insert(rng.randrange(len(fields)), fields[place])
            case 2 if fields:
                fields[place] = (fields[place][0], rng.choice(JUNK))
            case 3:
                fields.insert(place, (rng.choice(TAGS), rng.choice(JUNK)))
            case 4:
                rng.shuffle(fields)
            case 5 if fields and fields[0][0] == 34:
                fields[0] = (34, str(rng.choice((0, 1, 2, 2, 3, 4, 7, 1_000, 10**17))))
            case 6:
                fields.insert(min(4, len(fields)), (43, "Y"))
                fields.insert(min(5, len(fields)), (122, rng.choice((TIME, "20231114-22:13:21", "x"))))
            case _:
                kind = rng.choice(("D", "*", "", "AE", "ZZ", "1", "Ä", "8"))
    frame = frame_of(kind, fields, rng)
    if rng.random() < 0.25:
        damaged = bytearray(frame)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        frame = bytes(damaged)
    return frame


def is_garbled(frame: bytes) -> bool:
    """By the standard alone: three first fields, length, checksum; slow and plain."""
    found = re.fullmatch(rb"8=FIX[^\x01]*\x019=([0-9]+)\x01(35=.*\x01)10=([0-9]{3})\x01", frame, re.DOTALL)
    if found is None or int(found[1]) != len(found[2]):
        return True
    return sum(frame[: -len("10=000|")]) % 256 != int(found[3])


def logged_on() -> SessionState:
    state, _ = advance(VENUE, FIX44, SessionState(), Connected(NOW))
    header = [(34, "1"), (49, "HTFI"), (52, TIME), (56, "VENUE")]
    state, _ = advance(
        VENUE, FIX44, state, Received(NOW, encode("FIX.4.4", "A", header, [(98, "0"), (108, "30")]))
    )
    assert state.phase is ConnectionPhase.LOGGED_ON
    return state


def judge(frame: bytes, before: SessionState) -> str:
    """What became of one frame; fails where it breaks a rule."""
    after, actions = advance(VENUE, FIX44, before, Received(NOW, frame))
    answers = [action for action in actions if isinstance(action, SendMessage)]
    for answer in answers:
        message = decode(answer.frame, FIX44)
        assert isinstance(message, FixMessage)
        assert check_message(message, FIX44, allow_user_fields=False) is None, message.fields
    types = [answer.frame.split(b"\x01")[2] for answer in answers]
    if is_garbled(frame):
        assert (after, answers) == (before, []), frame
        return "garbled"
    was_reset = any(isinstance(action, ResetNumbers) for action in actions)
    if not was_reset:
        assert after.next_out == before.next_out + len(answers)
        assert after.next_in >= before.next_in
    if after.phase is ConnectionPhase.DISCONNECTED:
        assert isinstance(actions[-1], Disconnect)
        return "ended"
    if after.phase is ConnectionPhase.LOGOUT_SENT:
        assert types[-1] == b"35=5"
        return "logging out"
    if b"35=3" in types:
        return "rejected"
    if after.waiting:
        assert types.count(b"35=2") == 1
        return "waits for a gap"
    if after == before and not actions:
        # no field where one should be, a duplicate of what has come, or a reset to the number that is expected
        is_no_message = not isinstance(decode(frame, FIX44), FixMessage)
        assert is_no_message or b"\x0143=Y\x01" in frame or re.search(rb"\x0136=0*2\x01", frame), frame
        return "ignored"
    assert (
        any(isinstance(action, Deliver | ExpectNext | Resend | ResetNumbers) for action in actions)
        or after == before
    ), frame
    return "accepted"


def goes_on(state: SessionState) -> bool:
    """Whether the next message in turn is answered."""
    header = [(34, str(state.next_in)), (49, "HTFI"), (52, TIME), (56, "VENUE")]
    _, actions = advance(
        VENUE, FIX44, state, Received(NOW, encode("FIX.4.4", "1", header, [(112, "still there")]))
    )
    return any(
        isinstance(action, SendMessage) and b"\x01112=still there\x01" in action.frame for action in actions
    )


def run(seed: int, num_messages: int) -> dict[str, int]:
    rng = random.Random(seed)
    start = logged_on()
    counts: dict[str, int] = {}
    for _ in range(num_messages):
        frame = malformed(rng)
        outcome = judge(frame, start)
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome in ("rejected", "ignored", "accepted", "garbled") and rng.random() < 0.05:
            after, _ = advance(VENUE, FIX44, start, Received(NOW, frame))
            assert goes_on(after), frame
    return counts


OUTCOMES = {"garbled", "ended", "logging out", "rejected", "waits for a gap", "accepted"}


def test_malformed_messages_are_refused_by_the_rule() -> None:
    counts = run(1, 6_000)
    assert set(counts) >= OUTCOMES
    assert min(counts[outcome] for outcome in OUTCOMES) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_malformed_messages_are_refused_by_the_rule(seed: int) -> None:
    counts = run(1_000 + seed, 100_000)
    assert set(counts) >= OUTCOMES
    assert sum(counts.values()) == 100_000


@pytest.mark.parametrize("seed", range(4))
def test_stream_of_damaged_bytes_never_stops_the_session_from_reading(seed: int) -> None:
    rng = random.Random(seed)
    settings, state, rest, now_ns = VENUE, logged_on(), b"", NOW
    num_frames = 0
    for _ in range(300):
        data = bytearray(malformed(rng))
        if rng.random() < 0.5:
            del data[rng.randrange(len(data)) :]
        frames, rest = split_frames(rest + bytes(data), settings.max_body_bytes)
        assert len(rest) <= settings.max_body_bytes + 64
        for frame in frames:
            state, _ = advance(settings, FIX44, state, Received(now_ns, frame))
            num_frames += 1
            if state.phase is not ConnectionPhase.LOGGED_ON:
                state = logged_on()
    assert num_frames > 100

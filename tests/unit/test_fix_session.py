"""Rules of the FIX session that QuickFIX's definitions leave out: initiator, resets, repeated gaps, refused logons."""

from dataclasses import replace

import pytest

from fix_pair import START_NS, End, Pair
from fix_peer import CLIENT, VENUE, order_fields
from htfi.domain.time import NS_PER_S
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.events import (
    ClockStepped,
    Connected,
    ConnectionPhase,
    LogoutRequested,
    Received,
    SendRequested,
    SessionState,
    Tick,
)
from htfi.execution.fix.messages import Fields, encode
from htfi.execution.fix.session import advance, next_deadline_ns
from htfi.execution.fix.timestamps import format_timestamp

LOGON = [(98, "0"), (108, "30")]


def frame(kind: str, number: int, body: Fields = (), *, at_ns: int = START_NS, **header: str) -> bytes:
    """A message of the client's."""
    fields = {34: str(number), 49: "HTFI", 52: format_timestamp(at_ns), 56: "VENUE"}
    fields |= {int(tag.removeprefix("t")): value for tag, value in header.items()}
    return encode("FIX.4.4", kind, sorted(fields.items()), list(body))


def venue(**changes: object) -> End:
    end = End(replace(VENUE, **changes))
    end.connect(START_NS)
    return end


def logged_on(**changes: object) -> End:
    end = venue(**changes)
    end.receive(frame("A", 1, LOGON), START_NS)
    assert [(one.msg_type, one.sequence) for one in end.frames()] == [("A", 1)]
    return end


def kinds(end: End) -> list[str]:
    return [message.msg_type for message in end.frames()]


def test_state_before_an_event_is_left_as_it_was() -> None:
    end = logged_on()
    before = end.state
    copy = SessionState(*(getattr(before, name) for name in before.__struct_fields__))
    first = advance(end.settings, end.dictionary, before, Received(START_NS, frame("1", 2, [(112, "x")])))
    assert before == copy
    assert first == advance(
        end.settings, end.dictionary, before, Received(START_NS, frame("1", 2, [(112, "x")]))
    )


@pytest.mark.parametrize(
    ("body", "header", "settings", "why"),
    [
        ([(98, "1"), (108, "30")], {}, {}, "asks for encryption"),
        ([(98, "0"), (108, "-5")], {}, {}, "HeartBtInt (108) is out of bounds"),
        ([(98, "0"), (108, "99999")], {}, {}, "HeartBtInt (108) is out of bounds"),
        ([(98, "0")], {}, {}, "Required tag missing (tag 108)"),
        ([*LOGON, (464, "Y")], {}, {}, "TestMessageIndicator"),
        ([*LOGON, (464, "N")], {}, {"is_test": True}, "TestMessageIndicator"),
        ([*LOGON, (141, "Y")], {"t34": "7"}, {}, "its own is not 1"),
        ([*LOGON], {"t49": "OTHER"}, {}, "CompID problem"),
        ([*LOGON], {"t52": "20200101-00:00:00"}, {}, "SendingTime accuracy problem"),
        ([*LOGON], {}, {"username": "u", "password": "p"}, "Username (553) or Password (554)"),
        ([*LOGON, (553, "u"), (554, "q")], {}, {"username": "u", "password": "p"}, "Username (553) or Password (554)"),
    ],
)  # fmt: skip
def test_logon_is_refused_without_an_answer(
    body: Fields, header: dict[str, str], settings: dict[str, object], why: str
) -> None:
    end = venue(**settings)
    end.receive(frame("A", 1, body, **header), START_NS)
    assert len(end.ends) == 1
    assert why in end.ends[0]
    assert end.outbox == b""
    assert end.state.next_out == 1


def test_logon_with_the_right_password_is_accepted() -> None:
    end = venue(username="u", password="p")
    end.receive(frame("A", 1, [*LOGON, (553, "u"), (554, "p")]), START_NS)
    assert end.state.phase is ConnectionPhase.LOGGED_ON


def test_initiator_sends_its_password() -> None:
    end = End(replace(CLIENT, username="u", password="p", is_test=True))
    end.connect(START_NS)
    (logon,) = end.frames()
    assert [logon.get(tag) for tag in (108, 553, 554, 464, 141)] == ["30", "u", "p", "Y", ""]


def test_initiator_may_reset_the_numbers() -> None:
    pair = Pair(End(replace(CLIENT, reset_on_logon=True), 9, 5), End(VENUE, 3, 2))
    pair.log_on()
    assert (pair.client.state.next_out, pair.client.state.next_in) == (2, 2)
    assert (pair.venue.state.next_out, pair.venue.state.next_in) == (2, 2)
    assert pair.client.num_logons == pair.venue.num_logons == 1


def test_reset_that_the_acceptor_asks_for_is_answered() -> None:
    end = End(FixSession("VENUE", "HTFI"), 7, 4)  # an initiator, whose counterparty answers with a reset
    end.connect(START_NS)
    end.frames()
    end.receive(frame("A", 1, [*LOGON, (141, "Y")]), START_NS)
    (answer,) = end.frames()
    assert (answer.msg_type, answer.sequence, answer.get(141)) == ("A", 1, "Y")
    assert (end.state.next_out, end.state.next_in, end.state.phase) == (2, 2, ConnectionPhase.LOGGED_ON)


def test_logon_with_a_low_number_ends_with_the_expected_one_named() -> None:
    end = End(VENUE, 4, 6)
    end.connect(START_NS)
    end.receive(frame("A", 2, LOGON), START_NS)
    (logout,) = end.frames()
    assert logout.get(58) == "MsgSeqNum too low, expecting 6 but received 2"
    assert not end.is_connected


def test_refusal_of_the_counterparty_is_told() -> None:
    end = End(FixSession("VENUE", "HTFI"))
    end.connect(START_NS)
    end.receive(frame("5", 1, [(58, "MsgSeqNum too low, expecting 9 but received 1")]), START_NS)
    assert end.ends == [
        "the first message is no Logon but of type 5: MsgSeqNum too low, expecting 9 but received 1"
    ]


def test_second_logon_in_a_session_is_rejected() -> None:
    end = logged_on()
    end.receive(frame("A", 2, LOGON), START_NS)
    (reject,) = end.frames()
    assert (reject.msg_type, reject.get(58), reject.get(373)) == ("3", "already logged on", "99")
    assert end.state.phase is ConnectionPhase.LOGGED_ON


def test_gap_that_stays_open_is_asked_for_again_and_then_ends_the_session() -> None:
    end = logged_on(resend_timeout_s=10.0)
    end.receive(frame("D", 5, order_fields("O5")), START_NS)
    now_ns = START_NS
    requests = []
    for _ in range(40):
        now_ns += NS_PER_S
        requests += [one for one in end.frames() if one.msg_type in ("2", "5")]
        end.receive(frame("0", 6 + len(requests), at_ns=now_ns), now_ns)
        end.handle(Tick(now_ns))
    assert [(one.msg_type, one.get(7), one.get(58)) for one in requests] == [
        ("2", "2", ""), ("2", "2", ""), ("2", "2", ""), ("5", "", "MsgSeqNum 2 was requested 3 times"),
    ]  # fmt: skip
    assert end.delivered == []


def test_messages_that_wait_for_a_gap_are_bounded() -> None:
    end = logged_on(max_waiting=3)
    for number in range(3, 30):
        end.receive(frame("D", number, order_fields(f"O{number}")), START_NS)
    assert [message.sequence for message in end.state.waiting] == [3, 4, 5]
    end.receive(frame("D", 2, order_fields("O2")), START_NS)
    assert [message.get(11) for message in end.delivered] == ["O2", "O3", "O4", "O5"]
    assert end.state.next_in == 6


def test_resend_request_that_came_too_early_is_answered_and_counted_once() -> None:
    end = logged_on()
    end.handle(SendRequested(START_NS, "8", [(37, "1")]))
    end.frames()
    end.receive(frame("2", 4, [(7, "1"), (16, "0")]), START_NS)
    assert kinds(end) == ["4", "8", "2"]
    for number in (2, 3):
        end.receive(frame("D", number, order_fields(f"O{number}")), START_NS)
    assert end.state.next_in == 5


@pytest.mark.parametrize(
    ("begin", "end_number", "tag"), [("0", "0", "7"), ("9", "0", "7"), ("1", "0", ""), ("2", "1", "7")]
)
def test_resend_request_beyond_what_was_sent_is_rejected(begin: str, end_number: str, tag: str) -> None:
    end = logged_on()
    end.receive(frame("2", 2, [(7, begin), (16, end_number)]), START_NS)
    (answer,) = end.frames()
    assert (answer.msg_type, answer.get(371)) == (("3", tag) if tag else ("4", ""))


def test_message_without_a_number_ends_the_session() -> None:
    end = logged_on()
    end.receive(
        encode("FIX.4.4", "0", [(49, "HTFI"), (52, format_timestamp(START_NS)), (56, "VENUE")], []), START_NS
    )
    assert kinds(end) == ["5"]
    assert end.ends == ["a message has no MsgSeqNum"]


def test_deadline_is_never_later_than_what_is_due() -> None:
    end = End(VENUE)
    assert next_deadline_ns(end.settings, end.state) is None
    end.connect(START_NS)
    assert next_deadline_ns(end.settings, end.state) == START_NS + 10 * NS_PER_S
    end.receive(frame("A", 1, LOGON), START_NS)
    assert next_deadline_ns(end.settings, end.state) == START_NS + 30 * NS_PER_S
    end.handle(LogoutRequested(START_NS))
    assert next_deadline_ns(end.settings, end.state) == START_NS + 2 * NS_PER_S
    end.handle(Tick(START_NS + 2 * NS_PER_S))
    assert end.ends == ["no answer to our Logout came in time"]


def test_connection_without_a_logon_ends() -> None:
    end = venue()
    end.handle(Tick(START_NS + 9 * NS_PER_S))
    assert end.ends == []
    end.handle(Tick(START_NS + 10 * NS_PER_S))
    assert end.ends == ["no Logon came in time"]


def test_heartbeat_of_zero_sends_none() -> None:
    end = venue()
    end.receive(frame("A", 1, [(98, "0"), (108, "0")]), START_NS)
    end.frames()
    end.handle(Tick(START_NS + 3600 * NS_PER_S))
    assert kinds(end) == []
    assert end.state.phase is ConnectionPhase.LOGGED_ON


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_step_of_the_clock_moves_no_deadline(step_s: int) -> None:
    end = logged_on(max_clock_error_s=86_400.0)
    before = next_deadline_ns(end.settings, end.state)
    end.handle(ClockStepped(START_NS + step_s * NS_PER_S, step_s * NS_PER_S))
    after = next_deadline_ns(end.settings, end.state)
    assert before is not None
    assert after == before + step_s * NS_PER_S
    end.handle(Tick(after - 1))
    assert kinds(end) == []
    end.handle(Tick(after))
    assert kinds(end) == ["0"]


def test_application_sends_no_session_message() -> None:
    end = logged_on()
    end.handle(SendRequested(START_NS, "4", [(36, "9")]))
    assert end.refusals == ["the session itself sends such messages"]
    assert end.frames() == []


def test_what_a_reject_repeats_cannot_break_it() -> None:
    end = logged_on()
    body = "35=\xc4\x0134=2\x0149=HTFI\x0152=" + format_timestamp(START_NS) + "\x0156=VENUE\x01115=\xd6\x01"
    head = f"8=FIX.4.4\x019={len(body)}\x01{body}".encode("latin-1")
    end.receive(head + b"10=%03d\x01" % (sum(head) % 256), START_NS)
    (reject,) = end.frames()
    assert [reject.get(tag) for tag in (45, 372, 373, 128)] == ["2", "", "11", ""]


def test_resent_message_keeps_its_first_time() -> None:
    pair = Pair.of().log_on()
    pair.send(pair.client, "c1")
    pair.break_off()
    pair.now_ns += 60 * NS_PER_S
    pair.log_on()
    pair.venue.handle(SendRequested(pair.now_ns, "B", [(148, "after")]))
    (order,) = pair.venue.delivered
    assert (order.get(122), order.get(52)) == (format_timestamp(START_NS), format_timestamp(pair.now_ns))
    assert order.get(11) == "c1"


def test_connected_acceptor_sends_nothing_first() -> None:
    state, actions = advance(VENUE, End(VENUE).dictionary, SessionState(), Connected(START_NS))
    assert actions == []
    assert state.phase is ConnectionPhase.LOGON_AWAITED

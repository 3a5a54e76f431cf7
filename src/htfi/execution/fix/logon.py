"""Whether a counterparty is who it should be, and whether its Logon is accepted."""

import hmac

from htfi.domain.time import NS_PER_S
from htfi.execution.fix.checking import REASON_TEXTS, MessageFault, RejectReason
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.timestamps import parse_timestamp


def identity_problem(settings: FixSession, message: FixMessage, at_ns: int) -> RejectReason | None:
    if message.get(49) != settings.target or message.get(56) != settings.sender:
        return RejectReason.COMP_ID
    sent_ns = parse_timestamp(message.get(52))
    if sent_ns is None or abs(at_ns - sent_ns) > settings.max_clock_error_s * NS_PER_S:
        return RejectReason.SENDING_TIME
    return None


def logon_problem(settings: FixSession, message: FixMessage, fault: MessageFault | None, at_ns: int) -> str:
    """Why a Logon is refused; empty: it is not. Who fails it learns nothing but the disconnection."""
    if fault is not None:
        return f"the Logon is refused: {REASON_TEXTS[fault.reason]} (tag {fault.tag})"
    if message.sequence is None:
        return "the Logon has no MsgSeqNum (34)"
    problem = identity_problem(settings, message, at_ns)
    if problem is not None:
        return f"the Logon is refused: {REASON_TEXTS[problem]}"
    if message.get(98) != "0":
        return "the Logon asks for encryption: use TLS"
    if not 0 <= int(message.get(108)) <= 3_600:
        return "the Logon's HeartBtInt (108) is out of bounds"
    if message.get(1137) != settings.application_version:
        return f"the Logon's DefaultApplVerID (1137) is not {settings.application_version}"
    if message.get(464) not in ("", "Y" if settings.is_test else "N"):
        return "the Logon's TestMessageIndicator (464) does not agree with ours"
    if message.get(141) == "Y" and message.sequence != 1:
        return "the Logon resets sequence numbers, and its own is not 1"
    if not settings.initiator and not (
        _is_same(message.get(553), settings.username) and _is_same(message.get(554), settings.password)
    ):
        return "the Logon's Username (553) or Password (554) is not right"
    return ""


def _is_same(given: str, expected: str) -> bool:
    return not expected or hmac.compare_digest(given.encode("latin-1"), expected.encode())

"""Settings of one FIX session."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Count, check_bounds, setting

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Seconds = Annotated[float, Meta(gt=0.0, le=86_400.0)]
HeartbeatSeconds = Annotated[int, Meta(ge=0, le=3_600)]
BodyBytes = Annotated[int, Meta(ge=1_024, le=2**26)]

FIXT = "FIXT.1.1"
_VERSIONS = {"FIX.4.4": ("FIX.4.4", "FIX44", ""), "FIX.5.0SP2": (FIXT, "FIX50SP2", "9")}


@dataclass(frozen=True, slots=True)
class FixSession:
    """Who speaks with whom, by which version and rules."""

    sender: Name = setting("", "SenderCompID (49): our identity")
    target: Name = setting("", "TargetCompID (56): the counterparty's identity")
    version: str = setting("FIX.4.4", "FIX.4.4, or FIX.5.0SP2 over FIXT.1.1")
    initiator: bool = setting(True, "whether we connect and log on first")
    heartbeat_s: HeartbeatSeconds = setting(
        30, "HeartBtInt (108) that an initiator asks for; 0: no heartbeats"
    )
    reset_on_logon: bool = setting(
        False, "sequence numbers begin at 1 with each logon: what was missed is not sent again"
    )
    max_clock_error_s: Seconds = setting(
        120.0, "how far SendingTime (52) may be from our clock before the session ends"
    )
    logon_timeout_s: Seconds = setting(10.0, "how long a connection may stay without a Logon")
    logout_timeout_s: Seconds = setting(2.0, "how long an answer to our Logout is waited for")
    resend_timeout_s: Seconds = setting(30.0, "after how long a gap that stays open is asked for again")
    max_waiting: Count = setting(10_000, "messages that are kept until a gap before them is filled")
    max_body_bytes: BodyBytes = setting(2**20, "a longer message is garbled")
    allow_user_fields: bool = setting(False, "accept fields 5000 and above, which no dictionary describes")
    is_test: bool = setting(
        False, "a test session: what a Logon says in TestMessageIndicator (464) must agree"
    )
    username: str = setting("", "Username (553) in the Logon")
    password: str = setting("", "Password (554) in the Logon; the journal does not have it")

    def __post_init__(self) -> None:
        check_bounds("fix", self)
        if self.version not in _VERSIONS:
            raise InvalidInput(f"fix.version is {self.version!r}: give {' or '.join(_VERSIONS)}")
        for name, text in (("sender", self.sender), ("target", self.target), ("username", self.username)):
            if not text.isascii() or "\x01" in text:
                raise InvalidInput(f"fix.{name} must be ASCII without control characters")

    @property
    def begin_string(self) -> str:
        """BeginString (8)."""
        return _VERSIONS[self.version][0]

    @property
    def dictionary_name(self) -> str:
        return _VERSIONS[self.version][1]

    @property
    def application_version(self) -> str:
        """DefaultApplVerID (1137); empty before FIXT."""
        return _VERSIONS[self.version][2]

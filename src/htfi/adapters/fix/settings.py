"""Where a FIX session connects or listens, by one TOML file."""

import ssl
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds, check_value, setting
from htfi.execution.fix.config import FixSession, Name, Seconds

Port = Annotated[int, Meta(ge=0, le=65_535)]


@dataclass(frozen=True, slots=True)
class FixTls:
    """TLS of a connection: with all three files both sides prove who they are."""

    certificate: str = setting("", "our certificate, a PEM file")
    key: str = setting("", "its private key, a PEM file")
    authorities: str = setting("", "certificates of the authorities that the counterparty's is checked by")
    server_name: str = setting("", "the name in the acceptor's certificate; empty: the host")


@dataclass(frozen=True, slots=True)
class FixOrders:
    """Table `[orders]`: how a run's orders use the session, or how a simulated venue takes them."""

    answer_wait_s: Seconds = setting(
        2.0, "how long the run waits for the answer to a request before it continues"
    )
    logon_wait_s: Seconds = setting(
        5.0, "how long the run waits for the session to come back; then a new order is refused, not kept"
    )
    max_resend_age_s: Seconds = setting(
        5.0, "an older order that the venue asks for again is not sent any more, and counts as refused"
    )
    cancel_on_disconnect: bool = setting(
        True, "what is open when the session breaks, or the run ends, is cancelled as soon as it can be"
    )
    send_prices: bool = setting(
        False, "the venue is simulated (`htfi venue serve`): it gets the run's prices and goes by its clock"
    )
    shares_clock: bool = setting(
        False, "the venue is simulated and publishes prices of its own: it goes by the run's clock"
    )

    def __post_init__(self) -> None:
        if self.send_prices and self.shares_clock:
            raise InvalidInput(
                "orders.send_prices and orders.shares_clock: the venue gets prices or has its own: keep one"
            )

    @property
    def is_simulated(self) -> bool:
        """Whether what passes follows from the run's inputs, so that it can be made again."""
        return self.send_prices or self.shares_clock


@dataclass(frozen=True, slots=True)
class FixMarketData:
    """Table `[market_data]`: the session over which prices come, or over which a simulated venue publishes them.

    What is empty is as in [session] and beside it; one of sender and target differs where orders go, too.
    """

    symbols: tuple[Name, ...] = setting((), "Symbol (55) of the instruments that are subscribed to")
    sender: str = setting("", "SenderCompID (49) of the session for prices")
    target: str = setting("", "TargetCompID (56) of it")
    host: str = setting("", "where its acceptor is")
    port: Port = setting(0, "its TCP port; 0: that of the orders")
    journal: str = setting("", "the folder of its sequence numbers and messages")
    stamp: Literal["arrival", "row"] = setting(
        "arrival", "prices become known when they arrive, or at the time of their entries: row, for a replay"
    )
    max_silence_s: Seconds = setting(30.0, "prices that stop for so long are said on standard error")
    end_at_close: bool = setting(
        False, "the source ends when the venue says that its session is closed (35=h)"
    )


@dataclass(frozen=True, slots=True)
class FixEndpoint:
    """One session with its address and journal."""

    session: FixSession
    host: str = setting("127.0.0.1", "where the acceptor is, or where we listen")
    port: Port = setting(0, "its TCP port; 0 lets an acceptor choose one")
    journal: str = setting("", "the folder of sequence numbers and messages; empty: beside the settings")
    sync: bool = setting(
        True, "sync the journal before each send: without it a loss of power may lose messages"
    )
    reconnect_s: Seconds = setting(1.0, "how long an initiator waits before it connects again, at first")
    max_reconnect_s: Seconds = setting(30.0, "and at most")
    password_file: str = setting("", "a file with the Password (554) of the Logon")
    tls: FixTls | None = None
    orders: FixOrders = FixOrders()
    market_data: FixMarketData | None = None

    def __post_init__(self) -> None:
        check_bounds("fix", self)


def read_endpoint(path: Path) -> FixEndpoint:
    """The endpoint of a TOML file; its paths are relative to the file. Raises: InvalidInput."""
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: is no TOML: {error}") from error
    if not isinstance(table.get("session"), dict):
        raise InvalidInput(f"{path}: the table [session] is missing: it names sender and target")
    if "password" in table["session"]:
        raise InvalidInput(f"{path}: session.password: name a file with it in password_file")
    try:
        check_value("fix", table, FixEndpoint)
        endpoint = msgspec.convert(table, FixEndpoint)
    except (InvalidInput, msgspec.ValidationError) as error:
        raise InvalidInput(f"{path}: {error}") from error
    folder = path.parent
    tls = endpoint.tls
    if tls is not None:
        tls = replace(tls, **{name: str(folder / value) for name in ("certificate", "key", "authorities")
                              if (value := getattr(tls, name))})  # fmt: skip
    session = endpoint.session
    if endpoint.password_file:
        try:
            session = replace(session, password=(folder / endpoint.password_file).read_text().strip())
        except OSError as error:
            raise InvalidInput(
                f"{folder / endpoint.password_file}: cannot be read: {error.strerror}"
            ) from error
    journal = endpoint.journal or f"fix-{session.sender}-{session.target}"
    prices = endpoint.market_data
    if prices is not None and prices.journal:
        prices = replace(prices, journal=str(folder / prices.journal))
    return replace(endpoint, journal=str(folder / journal), tls=tls, session=session, market_data=prices)


def market_data_endpoint(endpoint: FixEndpoint) -> FixEndpoint:
    """The endpoint of the session for prices. Raises: InvalidInput."""
    stated, session = endpoint.market_data, endpoint.session
    assert stated is not None, "the file has a table [market_data]"
    own = replace(session, sender=stated.sender or session.sender, target=stated.target or session.target)
    is_same = (own.sender, own.target) == (session.sender, session.target)
    beside = str(Path(endpoint.journal).parent / f"fix-{own.sender}-{own.target}")
    return replace(
        endpoint,
        session=own,
        host=stated.host or endpoint.host,
        port=stated.port or endpoint.port,
        journal=stated.journal or (endpoint.journal if is_same else beside),
        sync=False,
    )


def tls_context(tls: FixTls, *, is_acceptor: bool) -> ssl.SSLContext:
    """TLS 1.2 or later. An acceptor with authorities asks for the initiator's certificate. Raises: InvalidInput."""
    for name in ("certificate", "key", "authorities"):
        if (file := getattr(tls, name)) and not Path(file).is_file():
            raise InvalidInput(f"fix.tls.{name}: {file} is not there: check the path")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_acceptor else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key or None)
        elif is_acceptor:
            raise InvalidInput("fix.tls.certificate: an acceptor needs one")
        if tls.authorities:
            context.load_verify_locations(tls.authorities)
            context.verify_mode = ssl.CERT_REQUIRED
        elif not is_acceptor:
            context.load_default_certs()
    except (OSError, ssl.SSLError) as error:
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidInput(f"fix.tls.key: {tls.key} is not the key of {tls.certificate}") from error
        raise InvalidInput(f"fix.tls: certificate, key or authorities cannot be used: {error}") from error
    return context

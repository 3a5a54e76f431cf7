"""Prices over a FIX session as a source of a run: `fix://FILE`, where the TOML file has a table [market_data]."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from htfi.adapters.feeds.live import Inbox, LiveReader
from htfi.adapters.feeds.records import WebJsonRows
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.run_on_session import run_on

SCHEME = "fix://"


def is_fix(text: str) -> bool:
    """Whether a source is a FIX session."""
    return text.startswith(SCHEME)


def prices_of(venue_file: Path) -> list[str]:
    """The source that the file of a venue states beside its orders: one or none. Raises: InvalidInput."""
    from htfi.adapters.fix.settings import market_data_endpoint, read_endpoint

    endpoint = read_endpoint(venue_file)
    if endpoint.market_data is None:
        if endpoint.orders.shares_clock:
            raise InvalidInput(
                f"{venue_file}: orders.shares_clock goes with a table [market_data]: the venue's prices"
            )
        return []
    if market_data_endpoint(endpoint).journal == endpoint.journal:
        raise InvalidInput(
            f"{venue_file}: orders and prices need a session each: name another market_data.sender or target"
        )
    return [f"{SCHEME}{venue_file}"]


def fix_source(spec: SourceSpec) -> SourceSpec:
    """The source with what its file says of it. Raises: InvalidInput."""
    from htfi.adapters.fix.settings import read_endpoint

    path = Path(spec.url.removeprefix(SCHEME))
    stated = read_endpoint(path).market_data
    if stated is None:
        raise InvalidInput(f"{path}: the table [market_data] is missing: it names the symbols")
    if not stated.symbols:
        raise InvalidInput(f"{path}: market_data.symbols is empty: name the instruments")
    tolerance = "0s" if spec.tolerance == SourceSpec("").tolerance else spec.tolerance
    return replace(spec, stamp=spec.stamp or stated.stamp, tolerance=tolerance)


def open_fix_source(spec: SourceSpec, inbox: Inbox, notify: Callable[[str], None]) -> LiveReader:
    """The reader of such a source. Raises: InvalidInput, DependencyUnavailable, IntegrityError."""
    from htfi.adapters.fix.market_feed import MarketDataReceiver
    from htfi.adapters.fix.session_thread import JournalPlace, SessionThread
    from htfi.adapters.fix.settings import market_data_endpoint, read_endpoint

    path = Path(spec.url.removeprefix(SCHEME))
    endpoint = read_endpoint(path)
    if not endpoint.session.initiator:
        raise InvalidInput(f"{path}: session.initiator is false: a run connects to its venue")
    own = market_data_endpoint(endpoint)
    if not own.port:
        raise InvalidInput(f"{path}: port is missing: give the venue's")
    assert own.market_data is not None, "the source was completed by it"
    session = SessionThread(own)
    try:
        noted = run_on(inbox.path.with_suffix(".fix.json"), session)
        place = JournalPlace(noted.num_files, noted.next_out, noted.next_in)
        receiver = MarketDataReceiver(
            session,
            own.market_data,
            (noted.prefix, place),
            inbox,
            notify,
            with_ids=endpoint.orders.shares_clock,
        )
    except BaseException:
        session.close()
        raise
    return LiveReader(spec, inbox, receiver, WebJsonRows())

"""Sources that are polled over HTTP: their client, the parser of their format, their poller.

Imported only where a source is one: the HTTP client takes a fifth of a second to import.
"""

import re
import threading
from pathlib import Path

from htfi import __version__
from htfi.adapters.feeds.live import FeedContext, Inbox
from htfi.adapters.feeds.rate_limits import EDGAR_INTERVAL_S
from htfi.adapters.feeds.records import WebJsonRows
from htfi.adapters.feeds.web.address import WebAddress, parse_address
from htfi.adapters.feeds.web.client import WebClient
from htfi.adapters.feeds.web.edgar import load_tickers
from htfi.adapters.feeds.web.formats import DetectingParser, EdgarParser, FeedParser, PageParser
from htfi.adapters.feeds.web.page_rules import candidate_rules
from htfi.adapters.feeds.web.pages import check_selectors
from htfi.adapters.feeds.web.poller import DocumentParser, WebPoller
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.spec import WEB_FORMATS, SourceSpec

_CONTACT = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+|https?://\S+")
_MAX_AGENT_CHARS = 200


ROWS = WebJsonRows


def check(spec: SourceSpec) -> None:
    """Raises: InvalidInput, DependencyUnavailable: what would stop the source is reported before the run begins."""
    address = parse_address(spec.url)
    if spec.format and spec.format not in WEB_FORMATS:
        raise InvalidInput(
            f"source '{spec.name}': format = '{spec.format}': choose one of {', '.join(WEB_FORMATS)}"
        )
    if spec.agent and (
        len(spec.agent) > _MAX_AGENT_CHARS or not (spec.agent.isascii() and spec.agent.isprintable())
    ):
        raise InvalidInput(
            f"source '{spec.name}': agent: write up to {_MAX_AGENT_CHARS} printable ASCII characters"
        )
    if _is_edgar(spec, address) and not _CONTACT.search(spec.agent):
        raise InvalidInput(
            f"source '{spec.name}': EDGAR requires a contact: "
            'state agent = "Your Name contact@your.domain" in the mapping'
        )
    _parser(spec, address)


def open_receiver(spec: SourceSpec, inbox: Inbox, context: FeedContext) -> WebPoller:
    """Raises: InvalidInput, DependencyUnavailable."""
    address = parse_address(spec.url)
    if _is_edgar(spec, address):
        context.rate_limiter.slow_down(address.host, EDGAR_INTERVAL_S)

    def client(stopped: threading.Event) -> WebClient:
        agent = spec.agent or f"htfi/{__version__}"
        return WebClient(address.host, agent, context.rate_limiter, stopped, robots=spec.format == "page")

    return WebPoller(
        inbox,
        address,
        _parser(spec, address),
        client,
        every_ns=spec.every_ns,
        max_age_ns=spec.max_age_ns,
        publisher=spec.publisher,
        notify=context.notify,
    )


def _parser(spec: SourceSpec, address: WebAddress) -> DocumentParser:
    edgar = EdgarParser(load_tickers(Path(spec.tickers)) if spec.tickers else {})
    if _is_edgar(spec, address):
        return edgar
    if spec.format in ("rss", "atom"):
        return FeedParser()
    rules = candidate_rules(address.host, spec.page, spec.zone)
    for each in rules:
        check_selectors(each)
    page = PageParser(rules)
    return page if spec.format == "page" else DetectingParser(edgar, page)


def _is_edgar(spec: SourceSpec, address: WebAddress) -> bool:
    at_sec = address.host == "sec.gov" or address.host.endswith(".sec.gov")
    return spec.format == "edgar" or (at_sec and not spec.format)

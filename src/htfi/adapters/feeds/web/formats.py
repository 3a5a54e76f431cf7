"""How each format of web source becomes entries: by what a person stated, else by what comes. Wiring chooses."""

from collections.abc import Callable, Iterator, Sequence

from htfi.adapters.feeds.web.address import WebAddress, resolve_link
from htfi.adapters.feeds.web.client import FetchFailed, HttpResponse, WebClient
from htfi.adapters.feeds.web.edgar import Tickers, parse_current, parse_submissions
from htfi.adapters.feeds.web.encoding import charset_of
from htfi.adapters.feeds.web.entries import BadDocument, ParsedDocument, WebEntry, one_line, short_id
from htfi.adapters.feeds.web.history import EntryHistory
from htfi.adapters.feeds.web.page_limits import MAX_PAGE_BYTES
from htfi.adapters.feeds.web.page_rules import PageRules
from htfi.adapters.feeds.web.pages import ListedRelease, Statement, read_list, read_statement
from htfi.adapters.feeds.web.rss import parse_feed
from htfi.domain.errors import InvalidInput
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason

_ACCEPT_FEEDS = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
_ACCEPT_PAGES = "text/html, application/xhtml+xml, */*;q=0.1"
_MAX_ATTEMPTS = 3
_MAX_TRACKED_KEYS = 4096

IsTooOld = Callable[[str], bool]


class FeedParser:
    """RSS and Atom are distinguished by the document."""

    wanted = _ACCEPT_FEEDS

    def parse(
        self, answer: HttpResponse, client: WebClient, memory: EntryHistory, too_old: IsTooOld
    ) -> ParsedDocument:
        del client, memory, too_old
        return parse_feed(answer.body, _charset(answer))


class EdgarParser:
    """The Atom feed of current filings or one filer's submissions in JSON."""

    wanted = f"application/json, {_ACCEPT_FEEDS}"

    def __init__(self, tickers: Tickers) -> None:
        self._tickers = tickers

    def parse(
        self, answer: HttpResponse, client: WebClient, memory: EntryHistory, too_old: IsTooOld
    ) -> ParsedDocument:
        del client, too_old
        past = memory.past.values()
        if answer.body.lstrip()[:1] == b"{":
            return parse_submissions(answer.body, self._tickers, past)
        return parse_current(answer.body, _charset(answer), self._tickers, past)


class PageParser:
    """A list whose new lines are followed to their statements, on its own host only."""

    wanted = _ACCEPT_PAGES

    def __init__(self, candidates: Sequence[PageRules]) -> None:
        self._candidates = candidates
        self._num_attempts: dict[str, int] = {}

    def parse(
        self, answer: HttpResponse, client: WebClient, memory: EntryHistory, too_old: IsTooOld
    ) -> ParsedDocument:
        client.require_robots()
        if len(answer.body) > MAX_PAGE_BYTES:
            raise BadDocument(f"{len(answer.body)} bytes: a page has at most {MAX_PAGE_BYTES}")
        listed, rules = read_list(answer.body, _charset(answer), self._candidates)
        if not listed:
            raise BadDocument(
                "no list of releases found: state the selectors item, link, title under [source.page]"
            )
        found = ParsedDocument([])
        found.entries = self._read(listed, rules, answer.address, client, memory, too_old, found)
        return found

    def _read(
        self,
        listed: Sequence[ListedRelease],
        rules: PageRules,
        base: WebAddress,
        client: WebClient,
        memory: EntryHistory,
        too_old: IsTooOld,
        found: ParsedDocument,
    ) -> Iterator[WebEntry]:
        for line in _oldest_first(listed):
            try:
                address = resolve_link(base, line.link)
            except InvalidInput as error:
                yield WebEntry(
                    line.link, line.title, refused=(QuarantineReason.MALFORMED, str(error), line.title)
                ).with_key()
                continue
            key = short_id(address.url)
            past = memory.past.get(key)
            if memory.contains(key) and past is not None and past.facts.get("listed") == line.title:
                memory.record_facts(past)
                found.unchanged_keys.append(key)
                continue
            if line.published and too_old(line.published):
                continue
            entry = WebEntry(
                key,
                line.title,
                "",
                address.url,
                line.published,
                rules.publisher,
                facts={"listed": line.title},
            )
            try:
                self._read_statement(entry, address, base, rules, client)
            except FetchFailed as error:
                if client.stopped:
                    return
                if self._should_retry(key, error):
                    found.needs_retry = True
                    continue
            self._num_attempts.pop(key, None)
            yield entry

    def _read_statement(
        self, entry: WebEntry, address: WebAddress, base: WebAddress, rules: PageRules, client: WebClient
    ) -> None:
        """Read the statement into its entry. Raises: FetchFailed."""
        if not _same_site(address.host, base.host):
            return  # its line is all that this site says
        answer = client.get(address, _ACCEPT_PAGES)
        kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
        if kind not in ("text/html", "application/xhtml+xml", "text/plain", ""):
            return
        if len(answer.body) > MAX_PAGE_BYTES:
            detail = f"{len(answer.body)} bytes: a page has at most {MAX_PAGE_BYTES}"
            entry.refused = QuarantineReason.TOO_LONG, detail, f"{entry.headline} {entry.url}"
            return
        statement = read_statement(answer.body, _charset(answer), rules)
        _add_statement(entry, statement)

    def _should_retry(self, key: str, error: FetchFailed) -> bool:
        """Whether a statement that did not come is waited for; else its line continues alone."""
        if error.forbidden or error.num_bytes:
            return False
        if len(self._num_attempts) > _MAX_TRACKED_KEYS:
            self._num_attempts.clear()
        self._num_attempts[key] = self._num_attempts.get(key, 0) + 1
        return self._num_attempts[key] < _MAX_ATTEMPTS


class DetectingParser:
    """For an address without a stated format: what comes says what it is."""

    wanted = f"{_ACCEPT_FEEDS[: -len(', */*;q=0.1')]}, application/json;q=0.8, text/html;q=0.7, */*;q=0.1"

    def __init__(self, edgar: EdgarParser, page: PageParser) -> None:
        self._edgar = edgar
        self._page = page

    def parse(
        self, answer: HttpResponse, client: WebClient, memory: EntryHistory, too_old: IsTooOld
    ) -> ParsedDocument:
        head = answer.body[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
        if head[:1] == b"{":
            return self._edgar.parse(answer, client, memory, too_old)
        lower = head.lower()
        if b"<html" in lower or lower.startswith(b"<!doctype html"):
            client.require_robots()
            client.check_robots(answer.address)
            return self._page.parse(answer, client, memory, too_old)
        return FeedParser().parse(answer, client, memory, too_old)


def _add_statement(entry: WebEntry, statement: Statement) -> None:
    entry.headline = statement.heading or entry.headline
    entry.body = statement.text
    entry.publisher = statement.publisher or entry.publisher
    if "T" in statement.published or not entry.published:
        entry.published = statement.published
    entry.hidden = statement.hidden


def _oldest_first(listed: Sequence[ListedRelease]) -> list[ListedRelease]:
    turned = list(reversed(listed))
    return (
        sorted(turned, key=lambda line: line.published[:10])
        if all(line.published for line in turned)
        else turned
    )


def _same_site(host: str, other: str) -> bool:
    return host == other or host.removeprefix("www.") == other.removeprefix("www.")


def _charset(answer: HttpResponse) -> str:
    return charset_of(one_line(answer.headers.get("content-type", "")))

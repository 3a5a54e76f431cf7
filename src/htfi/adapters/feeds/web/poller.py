"""A web source's entries into their inbox: a thread that asks, waits and asks again. `LiveReader` starts it.

It never gives up: what goes wrong is reported once, in the quarantine and to a person, and tried again with back-off.
"""

import re
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from htfi.adapters.feeds.live import Inbox
from htfi.adapters.feeds.rate_limits import back_off_s, fresh_s
from htfi.adapters.feeds.records import MAX_ROW_BYTES
from htfi.adapters.feeds.web.address import WebAddress
from htfi.adapters.feeds.web.client import FetchFailed, HttpResponse, WebClient
from htfi.adapters.feeds.web.entries import BadDocument, ParsedDocument, WebEntry, latest_instant
from htfi.adapters.feeds.web.history import EntryHistory
from htfi.domain.errors import DependencyUnavailable, HtfiError
from htfi.domain.time import NS_PER_S, to_ns
from htfi.pipeline.intake.quarantine_reasons import MAX_DETAIL_CHARS, QuarantineReason

_DIGITS = re.compile(r"\d+")  # of lines and bytes, which change while the trouble is the same
_BATCH_BYTES = 4_000_000
_MAX_HELD_S = 0.05  # an entry waits no longer for those that are still being fetched
_MAX_VALIDATOR_CHARS = 500


class DocumentParser(Protocol):
    """What makes entries of an answer. It may ask for more, politely, through `client`."""

    wanted: str  # the Accept header

    def parse(
        self, answer: HttpResponse, client: WebClient, memory: EntryHistory, too_old: Callable[[str], bool]
    ) -> ParsedDocument:
        """Raises: BadDocument, FetchFailed."""
        ...


class WebPoller:
    """`notify` gets a line when the source begins to fail and when it is back."""

    def __init__(
        self,
        inbox: Inbox,
        address: WebAddress,
        parser: DocumentParser,
        make_client: Callable[[threading.Event], WebClient],
        *,
        every_ns: int,
        max_age_ns: int,
        publisher: str,
        notify: Callable[[str], None],
    ) -> None:
        self._inbox = inbox
        self._address = address
        self._parser = parser
        self._make_client = make_client
        self._every_s = every_ns / NS_PER_S
        self._max_age_ns = max_age_ns
        self._publisher = publisher
        self._notify = notify
        self._stopped = threading.Event()
        self._num_failures = 0
        self._reported = ""
        self._encode = msgspec.json.Encoder().encode
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        client = self._make_client(self._stopped)
        try:
            memory = EntryHistory(
                self._inbox.path.with_suffix(".web.json"),
                (arrival.content for arrival in self._inbox.rows()),
                self._inbox.num_bytes,
                self._address.url,
            )
            while not self._stopped.is_set():
                self._stopped.wait(self._poll(client, memory))
        except HtfiError as error:
            self._inbox.finish(error)
        except Exception as error:  # noqa: BLE001 - a thread that dies in silence would leave the run waiting
            why = f"{type(error).__name__}: {error}"[:MAX_DETAIL_CHARS]
            self._inbox.finish(
                DependencyUnavailable(
                    f"{self._address.url}: cannot be read ({why}): remove it from the mapping"
                )
            )
        finally:
            client.close()

    def _poll(self, client: WebClient, memory: EntryHistory) -> float:
        """Ask once; seconds until the next time."""
        try:
            answer = client.get(self._address, self._parser.wanted, memory.conditions())
            trouble = self._write_new_entries(answer, client, memory) if answer.status == 200 else ""
        except FetchFailed as error:
            reason = QuarantineReason.TOO_LONG if error.num_bytes else QuarantineReason.UNREACHABLE
            return max(self._record_failure(reason, error.detail), error.retry_after_s)
        except BadDocument as error:
            return self._record_failure(QuarantineReason.BAD_DOCUMENT, str(error))
        if trouble:
            return self._record_failure(QuarantineReason.BAD_DOCUMENT, trouble)
        if self._reported:
            self._notify(f"{self._address.url}: answers again")
        self._num_failures, self._reported = 0, ""
        return max(self._every_s, fresh_s(answer.headers))

    def _write_new_entries(self, answer: HttpResponse, client: WebClient, memory: EntryHistory) -> str:
        """Write new entries down; what was wrong with the document, if anything."""
        found = self._parser.parse(answer, client, memory, self._is_too_old)
        shown: list[str] = []
        rows: list[tuple[bytes, int]] = []
        begun_s = time.monotonic()
        for entry in found.entries:
            shown.append(entry.key)
            if not self._is_too_old(entry.published) and (row := memory.new_row(entry)) is not None:
                rows += self._rows(entry, row)
            late = time.monotonic() - begun_s > _MAX_HELD_S
            if rows and (late or sum(len(content) for content, _ in rows[-8:]) > _BATCH_BYTES):
                self._inbox.append(rows)
                rows, begun_s = [], time.monotonic()
        if rows:
            self._inbox.append(rows)
        # A document that was broken, or not read to its end, is asked for again.
        headers = answer.headers if not found.error and not found.needs_retry else dict[str, str]()
        etag, modified = headers.get("etag", ""), headers.get("last-modified", "")
        memory.save(
            etag if len(etag) <= _MAX_VALIDATOR_CHARS else "",
            modified if len(modified) <= _MAX_VALIDATOR_CHARS else "",
            self._address.url,
            self._inbox.num_bytes,
            [*shown, *found.unchanged_keys],
        )
        return found.error

    def _is_too_old(self, published: str) -> bool:
        at = latest_instant(published)
        if not self._max_age_ns or at is None:
            return False
        return self._inbox.state()[1] - to_ns(at) > self._max_age_ns

    def _rows(self, entry: WebEntry, row: dict[str, Any]) -> list[tuple[bytes, int]]:
        """The entry's row, and one for each of its parts that was hidden."""
        hidden = [
            self._reject_document(
                QuarantineReason.HIDDEN_TEXT,
                "the page hides this text from its readers; the item is used without it",
                text,
            )
            for text in entry.hidden
        ]
        return [self._bytes(entry, row), *hidden]

    def _bytes(self, entry: WebEntry, row: dict[str, Any]) -> tuple[bytes, int]:
        if entry.refused is not None:
            return self._rejected_row(row, *entry.refused)
        details = {
            "ts": entry.published,
            "headline": entry.headline if not entry.withdraws else entry.headline or "withdrawn",
            "body": entry.body,
            "url": entry.url,
            "publisher": self._publisher or entry.publisher,
            "symbols": entry.symbols,
            "facts": entry.facts,
        }
        content = self._encode(row | {name: value for name, value in details.items() if value})
        if len(content) > MAX_ROW_BYTES:
            detail = f"{len(content)} bytes: an entry has at most {MAX_ROW_BYTES}"
            return self._rejected_row(
                row, QuarantineReason.TOO_LONG, detail, f"{entry.headline} {entry.body}"
            )
        return content, len(content)

    def _rejected_row(
        self, row: dict[str, Any], reason: QuarantineReason, detail: str, raw: str
    ) -> tuple[bytes, int]:
        """A row that says why its entry is refused, and is known by the entry's key."""
        note = {"refused": reason.value, "detail": detail[:MAX_DETAIL_CHARS], "raw": raw[:MAX_DETAIL_CHARS]}
        content = self._encode(note | row)
        return content, len(content)

    def _reject_document(self, reason: QuarantineReason, detail: str, raw: str) -> tuple[bytes, int]:
        return self._rejected_row({}, reason, detail, raw)

    def _record_failure(self, reason: QuarantineReason, detail: str) -> float:
        """A failure goes into the quarantine when it begins or changes, not each time."""
        self._num_failures += 1
        kind = _DIGITS.sub("#", detail)
        if not self._stopped.is_set() and kind != self._reported:
            self._reported = kind
            self._inbox.append([self._reject_document(reason, detail, self._address.url)])
            self._notify(f"{self._address.url}: {detail}: it is tried again at growing intervals")
        return back_off_s(self._num_failures, self._every_s)

"""The parser of each format of web sources: by what a person stated, else by what comes. Wiring chooses."""

from htfi.adapters.feeds.rss import parse_feed
from htfi.adapters.feeds.web_client import Answer, WebClient
from htfi.adapters.feeds.web_encoding import charset_of
from htfi.adapters.feeds.web_entries import Found
from htfi.adapters.feeds.web_memory import WebMemory


class FeedParser:
    """RSS and Atom are told apart by the document."""

    wanted = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"

    def parse(self, answer: Answer, client: WebClient, memory: WebMemory) -> Found:
        del client, memory
        return parse_feed(answer.body, charset_of(answer.headers.get("content-type", "")))

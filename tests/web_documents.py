"""Feeds, filings and pages of central banks that we wrote in the form of real ones, for tests of web sources."""

import json
from collections.abc import Sequence
from html import escape


def rss(*items: str, title: str = "Harbour Wire", head: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{head}\n'
        '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/" '
        'xmlns:atom="http://www.w3.org/2005/Atom">\n<channel>'
        f"<title>{title}</title><link>https://wire.example/</link><description>Markets</description>"
        '<atom:link href="https://wire.example/rss.xml" rel="self" type="application/rss+xml"/>'
        "<image><url>https://wire.example/l.png</url><title>Logo</title></image>\n"
        + "\n".join(items)
        + "\n</channel></rss>\n"
    ).encode()


def rss_item(
    number: int, headline: str = "", *, more: str = "", date: str | None = None, body: str | None = None
) -> str:
    minute, hour = number % 60, 8 + number // 60 % 12
    date = f"Mon, 13 May 2024 {hour:02d}:{minute:02d}:00 GMT" if date is None else date
    body = f"<p>Body of <b>story {number}</b>.</p>" if body is None else body
    return (
        f"<item><title>{escape(headline or f'Story {number} moves the market')}</title>"
        f'<link>https://wire.example/{number}</link><guid isPermaLink="false">wire-{number}</guid>'
        + (f"<pubDate>{date}</pubDate>" if date else "")
        + f"<description>{escape(body)}</description>{more}</item>"
    )


def atom(*entries: str, title: str = "Desk notes") -> bytes:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:at="http://purl.org/atompub/tombstones/1.0">'
        f"<title>{title}</title><id>urn:desk</id><updated>2024-05-13T09:00:00Z</updated>"
        '<link href="https://desk.example/"/><author><name>The desk</name></author>'
        + "".join(entries)
        + "</feed>"
    ).encode()


def atom_entry(
    number: int, headline: str, updated: str = "2024-05-13T09:00:00Z", body: str = "A note."
) -> str:
    return (
        f'<entry><title type="text">{escape(headline)}</title><id>urn:note:{number}</id>'
        f'<link rel="alternate" href="https://desk.example/{number}"/><updated>{updated}</updated>'
        f"<summary>{escape(body)}</summary><author><name>A. Writer</name></author></entry>"
    )


def tombstone(number: int) -> str:
    return f'<at:deleted-entry ref="urn:note:{number}" when="2024-05-13T11:00:00Z"/>'


def accession(number: int) -> str:
    return f"0000320193-24-{number:06d}"


def current_filings(*entries: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="ISO-8859-1" ?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        "<title>Latest Filings - Mon, 13 May 2024 16:30:01 EDT</title>\n"
        '<link rel="alternate" href="/cgi-bin/browse-edgar?action=getcurrent"/>\n'
        "<id>https://www.sec.gov/cgi-bin/browse-edgar?action=getcurrent</id>\n"
        "<author><name>Webmaster</name><email>webmaster@sec.gov</email></author>\n"
        "<updated>2024-05-13T16:30:01-04:00</updated>\n" + "\n".join(entries) + "\n</feed>\n"
    ).encode("latin-1")


def filing(
    number: int,
    form: str,
    name: str,
    cik: int,
    role: str = "Filer",
    *,
    items: Sequence[str] = (),
    at: str = "16:29:58",
) -> str:
    told = "".join(f"\n&lt;br&gt;Item {item}: As the form calls it" for item in items)
    return (
        f"<entry>\n<title>{form} - {escape(name)} ({cik:010d}) ({role})</title>\n"
        f'<link rel="alternate" type="text/html" href="https://www.sec.gov/Archives/edgar/data/{cik}/'
        f'{accession(number).replace("-", "")}/{accession(number)}-index.htm"/>\n'
        f'<summary type="html">\n &lt;b&gt;Filed:&lt;/b&gt; 2024-05-13 &lt;b&gt;AccNo:&lt;/b&gt; {accession(number)} '
        f"&lt;b&gt;Size:&lt;/b&gt; 5 MB{told}\n</summary>\n<updated>2024-05-13T{at}-04:00</updated>\n"
        f'<category scheme="https://www.sec.gov/" label="form type" term="{form}"/>\n'
        f"<id>urn:tag:sec.gov,2008:accession-number={accession(number)}</id>\n</entry>"
    )


def submissions(
    rows: Sequence[tuple[int, str, str, str, str]], *, name: str = "Apple Inc.", cik: str = "320193"
) -> bytes:
    """Rows of number, form, acceptance, report date, items, as the SEC has them: the newest first."""
    return json.dumps({
        "cik": cik, "entityType": "operating", "name": name, "tickers": ["AAPL"], "exchanges": ["Nasdaq"],
        "filings": {"recent": {
            "accessionNumber": [accession(row[0]) for row in rows],
            "filingDate": [row[2][:10] for row in rows],
            "reportDate": [row[3] for row in rows],
            "acceptanceDateTime": [row[2] for row in rows],
            "form": [row[1] for row in rows],
            "items": [row[4] for row in rows],
            "size": [1000 for _ in rows],
            "primaryDocument": ["doc.htm" for _ in rows],
            "primaryDocDescription": [row[1] for row in rows],
        }, "files": []},
    }).encode()  # fmt: skip


TICKERS = json.dumps({
    "0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."},
    "1": {"cik_str": 1652044, "ticker": "GOOGL", "title": "Alphabet Inc."},
    "2": {"cik_str": 1652044, "ticker": "GOOG", "title": "Alphabet Inc."},
}).encode()  # fmt: skip

_NAV = '<nav class="navbar"><ul><li><a href="/about.htm">About the Fed and its people</a></li></ul></nav>'
_FOOT = '<footer id="footer"><p>Accessibility. Contact us. Stay connected.</p><a href="/rss">RSS feeds</a></footer>'


def fed_list(*lines: tuple[str, str, str]) -> bytes:
    """Lines of date as 6/12/2024, address, title."""
    rows = "".join(
        f'<div class="row"><div class="col-xs-3 col-md-2 eventlist__time"><time>{date}</time></div>'
        f'<div class="col-xs-9 col-md-10 eventlist__event"><p><a href="{link}"><em>{title}</em></a></p>'
        '<p class="eventlist__press">Monetary Policy</p></div></div>'
        for date, link, title in lines
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>Press Releases</title></head><body>{_NAV}'
        f'<div id="content" class="container"><h2>2024 Press Releases</h2><div class="eventlist">{rows}</div></div>'
        f"{_FOOT}</body></html>"
    ).encode()


def fed_statement(
    title: str, date: str, *paragraphs: str, hour: str = "2:00 p.m. EDT", more: str = ""
) -> bytes:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Federal Reserve Board - {title}</title>'
        f'<script>var tracked = "<p>not text</p>";</script></head><body>{_NAV}<div id="content">'
        f'<div id="article"><div class="heading col-xs-12"><p class="article__time">{date}</p>'
        f'<h3 class="title">{title}</h3>'
        f'<p class="releaseTime">For release at {hour}</p><div class="shareDL"><a href="#">Share</a></div></div>'
        f'<div class="col-xs-12 col-sm-8 col-md-8">{text}{more}</div></div>'
        f'<div class="lastUpdate" id="lastUpdate">Last Update: {date}</div></div>{_FOOT}</body></html>'
    ).encode()


def ecb_list(*lines: tuple[str, str, str]) -> bytes:
    rows = "".join(
        f'<dt isoDate="{date}"><div class="date">{date}</div></dt><dd><div class="category">Press release</div>'
        f'<div class="title"><a href="{link}" lang="en">{title}</a></div></dd>'
        for date, link, title in lines
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta property="og:site_name" content="European Central Bank">'
        "</head><body>"
        f'<header><a href="/">Home of the European Central Bank</a></header><main><h1>Press releases</h1>'
        f'<dl class="ecb-basicList">{rows}</dl></main><footer>Copyright</footer></body></html>'
    ).encode()


def ecb_statement(title: str, date: str, *paragraphs: str) -> bytes:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta property="og:site_name" content="European Central Bank">'
        f'<meta property="article:published_time" content="2024-06-06"></head><body><header>Menu</header>'
        f'<main><div class="title"><ul class="ecb-pressCategory">PRESS RELEASE</ul>'
        f'<h1 class="ecb-pressContentTitle">{title}</h1>'
        f'<p class="ecb-publicationDate">{date}</p></div><div class="section">{text}</div>'
        '<div class="address-box -top-arrow"><h3>CONTACT</h3>Sonnemannstrasse 20</div></main>'
        "<footer>Disclaimer</footer></body></html>"
    ).encode()


def boe_list(*lines: tuple[str, str, str]) -> bytes:
    rows = "".join(
        f'<div class="col3"><a href="{link}" class="release release-news"><div class="release-content">'
        f'<time class="release-date" datetime="{date}">{date}</time>'
        f'<h3 class="list exclude-navigation">{title}</h3></div></a></div>'
        for date, link, title in lines
    )
    return (
        '<!DOCTYPE html><html lang="en-GB"><head><title>News | Bank of England</title></head>'
        "<body><header>Search our site</header>"
        f'<main id="main-content"><h1>News</h1><div id="SearchResults">{rows}</div></main></body></html>'
    ).encode()


def boe_statement(title: str, date: str, *paragraphs: str) -> bytes:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f'<!DOCTYPE html><html lang="en-GB"><head><title>{title} | Bank of England</title></head>'
        "<body><header>Menu</header>"
        f'<main id="main-content"><h1 itemprop="name">{title}</h1>'
        f'<div class="published-date">Published on <time>{date}</time></div>'
        f'<section class="page-section"><div class="page-content">{text}</div></section>'
        '<div class="social-share">Share this page</div></main><footer>Threadneedle Street</footer></body></html>'
    ).encode()

"""Throttle, back-off, freshness, robots.txt and addresses follow their rules, by a clock in hand."""

import pytest

from htfi.adapters.feeds.rate_limits import RateLimiter, back_off_s, fresh_s, retry_after_s
from htfi.adapters.feeds.web.address import is_allowed_target, parse_address, resolve_link
from htfi.adapters.feeds.web.robots import parse_robots
from htfi.domain.errors import InvalidInput


def test_two_requests_to_a_host_are_never_nearer_than_its_interval() -> None:
    now_s = [100.0]
    throttle = RateLimiter(lambda: now_s[0])
    assert [throttle.reserve("a.example") for _ in range(3)] == [0.0, 0.5, 1.0]
    assert throttle.reserve("b.example") == 0.0
    now_s[0] = 110.0
    assert throttle.reserve("a.example") == 0.0


def test_all_hosts_of_the_sec_share_at_most_ten_requests_a_second() -> None:
    throttle = RateLimiter(lambda: 0.0)
    hosts = ["www.sec.gov", "data.sec.gov", "sec.gov", "efts.sec.gov"] * 5
    turns_s = [throttle.reserve(host) for host in hosts]
    assert max(sum(begin <= turn_s < begin + 1.0 for turn_s in turns_s) for begin in turns_s) <= 10
    assert turns_s == sorted(turns_s)
    assert throttle.reserve("notsec.gov") == 0.0


def test_a_host_that_asked_for_it_is_left_alone_by_every_source() -> None:
    now_s = [0.0]
    throttle = RateLimiter(lambda: now_s[0])
    throttle.reserve("a.example")
    throttle.block("a.example", 30.0)
    now_s[0] = 10.0
    assert throttle.reserve("a.example") == 20.0
    throttle.slow_down("a.example", 5.0)
    assert throttle.reserve("a.example") == 20.5
    assert throttle.reserve("a.example") == 25.5


def test_back_off_doubles_to_an_hour_and_never_undercuts_the_interval() -> None:
    for failures in range(1, 40):
        wait_s = back_off_s(failures, 60.0)
        full_s = min(3600.0, 60.0 * 2 ** (failures - 1))
        assert full_s / 2 <= wait_s <= full_s
    assert back_off_s(30, 7200.0) >= 3600.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": "Mon, 13 May 2024 10:02:00 GMT", "date": "Mon, 13 May 2024 10:00:00 GMT"}, 120.0),
        ({"retry-after": "Mon, 13 May 2024 09:00:00 GMT", "date": "Mon, 13 May 2024 10:00:00 GMT"}, 0.0),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after": "9" * 500}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_own_clock(
    headers: dict[str, str], seconds: float
) -> None:
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"cache-control": "public, max-age=300"}, 300.0),
        ({"cache-control": "max-age=300", "age": "100"}, 200.0),
        ({"cache-control": "no-cache, max-age=300"}, 0.0),
        ({"cache-control": "max-age=31536000"}, 86_400.0),
        ({"cache-control": 'max-age="60"'}, 60.0),
        ({"cache-control": "max-age=many"}, 0.0),
        ({"expires": "Mon, 13 May 2024 10:01:00 GMT", "date": "Mon, 13 May 2024 10:00:00 GMT"}, 60.0),
        ({"expires": "0", "date": "Mon, 13 May 2024 10:00:00 GMT"}, 0.0),
    ],
)
def test_freshness_is_what_the_server_says(headers: dict[str, str], seconds: float) -> None:
    assert fresh_s(headers) == seconds


ROBOTS = b"""# rules
User-agent: othershop
Disallow: /

User-Agent: *
Disallow: /private/
Disallow: /*.pdf$
Allow: /private/open
Crawl-delay: 4

User-agent: htfi
User-agent: bot2
Disallow: /only
"""


@pytest.mark.parametrize(
    ("agent", "target", "allowed"),
    [
        ("somebody x@y.example", "/only", False),  # htfi is meant, whatever the desk is called
        ("somebody x@y.example", "/private/a", True),
        ("othershop x@y.example", "/a", False),
    ],
)
def test_robots_groups_that_name_us_go_before_those_for_all(agent: str, target: str, allowed: bool) -> None:
    assert parse_robots(ROBOTS, agent).allows(target) is allowed


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/news/1", True),
        ("/private/a", False),
        ("/private/open/a", True),
        ("/a/b.pdf", False),
        ("/a/b.pdf?x", True),
        ("/%70rivate/a", False),
        ("/robots.txt", True),
    ],
)
def test_robots_rules_go_by_the_longest_that_fits(target: str, allowed: bool) -> None:
    rules = parse_robots(ROBOTS.replace(b"htfi", b"bot1"), "desk")
    assert rules.allows(target) is allowed
    assert rules.delay_s == 4.0


def test_a_hostile_robots_txt_costs_little_time() -> None:
    rules = parse_robots(b"User-agent: *\n" + b"Disallow: /" + b"*a" * 250 + b"$\n" * 10_000, "desk")
    assert rules.allows("/" + "a" * 2000 + "b")


@pytest.mark.parametrize(
    ("found", "host", "configured", "may"),
    [
        ("93.184.216.34", "feeds.example", "feeds.example", True),
        ("10.0.0.5", "feeds.example", "feeds.example", False),
        ("127.0.0.1", "feeds.example", "feeds.example", False),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "localhost", "localhost", True),
        ("10.0.0.5", "localhost", "localhost", False),
        ("127.0.0.1", "127.0.0.1", "feeds.example", False),
        ("127.0.0.1", "localhost", "127.0.0.1", False),
        ("10.0.0.5", "10.0.0.5", "10.0.0.5", True),
        ("10.0.0.6", "10.0.0.6", "10.0.0.5", False),
        ("127.0.0.1", "2130706433", "2130706433", False),
        ("169.254.169.254", "169.254.169.254", "feeds.example", False),
        ("::1", "::1", "::1", True),
        ("::1", "feeds.example", "feeds.example", False),
        ("::ffff:10.0.0.5", "feeds.example", "feeds.example", False),
        ("64:ff9b::a00:5", "feeds.example", "feeds.example", False),
        ("2002:a00:5::1", "feeds.example", "feeds.example", False),
        ("::7f00:1", "feeds.example", "feeds.example", False),
        ("fe80::1%eth0", "feeds.example", "feeds.example", False),
        ("224.0.0.1", "feeds.example", "feeds.example", False),
        ("0.0.0.0", "feeds.example", "feeds.example", False),
        ("100.64.0.1", "feeds.example", "feeds.example", False),
    ],
)
def test_a_private_machine_is_asked_only_where_it_was_written(
    found: str, host: str, configured: str, may: bool
) -> None:
    assert is_allowed_target(found, host, configured) is may


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/x",
        "http:///x",
        "http://",
        "https://a.example:0/",
        "https://a.example:99999/",
        "http://a b.example/",
        "http://a.example/\r\nX: y",
        "http://[::1",
        "http://a.example\\@b.example/",
        "http://user:word@a.example/",
        "http://" + "a" * 3000,
        "file:///etc/passwd",
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        parse_address(url)


def test_links_are_read_against_the_page_they_stand_on() -> None:
    base = parse_address("https://bank.example/press/list.htm?y=1")
    assert resolve_link(base, "/a.htm#top").url == "https://bank.example/a.htm"
    assert resolve_link(base, "b.htm").url == "https://bank.example/press/b.htm"
    assert resolve_link(base, "//other.example:444/c").url == "https://other.example:444/c"
    with pytest.raises(InvalidInput):
        resolve_link(base, "javascript:alert(1)")

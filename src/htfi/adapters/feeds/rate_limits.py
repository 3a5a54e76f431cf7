"""Rate limits towards servers: how often a host is asked, how long to wait after a refusal or a fresh answer.

Every web source of a run shares one `RateLimiter`. Times are seconds of a monotonic clock that is handed in.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping

EDGAR_INTERVAL_S = 0.125  # 8 a second; the SEC allows 10 from one sender over all of its hosts
HOST_INTERVAL_S = 0.5
_MAX_BACK_OFF_S = 3600.0
_MAX_RETRY_AFTER_S = 86_400.0
_MAX_AGE_S = 86_400.0
_MAX_HOSTS = 1024


class RateLimiter:
    """Hands out turns: two requests to one host are never nearer than its interval."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._next_s: dict[str, float] = {}
        self._intervals_s: dict[str, float] = {}

    def reserve(self, host: str) -> float:
        """Seconds to wait before the request that this call stands for."""
        with self._lock:
            key, now_s = _limit_key(host), self._clock_s()
            turn_s = max(self._next_s.get(key, now_s), now_s)
            self._next_s[key] = turn_s + self._interval_of(key)
            if len(self._next_s) > _MAX_HOSTS:
                self._next_s = {host: at_s for host, at_s in self._next_s.items() if at_s > now_s}
            return turn_s - now_s

    def block(self, host: str, seconds: float) -> None:
        """No request goes to this host for so long: it said so."""
        with self._lock:
            key = _limit_key(host)
            until_s = self._clock_s() + min(seconds, _MAX_RETRY_AFTER_S)
            self._next_s[key] = max(self._next_s.get(key, 0.0), until_s)

    def slow_down(self, host: str, interval_s: float) -> None:
        """A host's own wish of the time between requests."""
        with self._lock:
            key = _limit_key(host)
            self._intervals_s[key] = max(self._interval_of(key), interval_s)

    def _interval_of(self, key: str) -> float:
        return self._intervals_s.get(key, EDGAR_INTERVAL_S if key == "sec.gov" else HOST_INTERVAL_S)


def back_off_s(num_failures: int, every_s: float) -> float:
    """Before the next try: `every` doubled with each failure up to an hour, drawn from the upper half."""
    longest_s = max(_MAX_BACK_OFF_S, every_s)
    wait_s = min(longest_s, every_s * 2.0 ** min(max(num_failures - 1, 0), 16))
    return max(every_s / 2, wait_s * random.uniform(0.5, 1.0))


def retry_after_s(headers: Mapping[str, str]) -> float:
    """What a server asks for with Retry-After, as seconds or as a date by its own clock; 0 for nothing."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and len(text) < 10:
        return min(float(text), _MAX_RETRY_AFTER_S)
    until_s, now_s = _date_s(text), _date_s(headers.get("date", ""))
    if until_s is None or now_s is None:
        return 0.0
    return min(max(until_s - now_s, 0.0), _MAX_RETRY_AFTER_S)


def fresh_s(headers: Mapping[str, str]) -> float:
    """For how long an answer may be taken as current, by Cache-Control or Expires; 0 where it does not say."""
    words = [word.strip().lower() for word in headers.get("cache-control", "").split(",")]
    if "no-cache" in words or "no-store" in words:
        return 0.0
    for word in words:
        name, _, value = word.partition("=")
        if (
            name.strip() == "max-age"
            and (digits := value.strip().strip('"')).isdecimal()
            and len(digits) < 12
        ):
            age = headers.get("age", "").strip()
            passed_s = float(age) if age.isdecimal() and len(age) < 12 else 0.0
            return min(max(float(digits) - passed_s, 0.0), _MAX_AGE_S)
    until_s, now_s = _date_s(headers.get("expires", "")), _date_s(headers.get("date", ""))
    if until_s is None or now_s is None:
        return 0.0
    return min(max(until_s - now_s, 0.0), _MAX_AGE_S)


def _limit_key(host: str) -> str:
    """Whose limit counts: all hosts of the SEC share theirs."""
    return "sec.gov" if host == "sec.gov" or host.endswith(".sec.gov") else host


def _date_s(text: str) -> float | None:
    from email.utils import parsedate_to_datetime  # late: files and tables are read without

    try:
        return parsedate_to_datetime(text).timestamp() if text and len(text) < 64 else None
    except (ValueError, OverflowError, TypeError):
        return None

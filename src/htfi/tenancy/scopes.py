"""What a caller may do."""

from collections.abc import Iterable
from enum import StrEnum

from htfi.domain.errors import InvalidInput


class ApiScope(StrEnum):
    """What a caller may do on the run of its tenant."""

    READ = "read"  # what the run has recorded, and what stands beside it
    ASK = "ask"  # have something worked out: posted bars, scenarios
    GENERATE = "generate"  # have a language model write or encode
    NEWS = "news"  # hand in news
    ACT = "act"  # stop, re-enable, approve, admit; cancel orders
    ADMIN = "admin"  # tenants, keys, quotas


def parse_scopes(words: Iterable[str], where: str) -> frozenset[ApiScope]:
    """Raises: InvalidInput for a word that is no scope, and for none."""
    words = list(words)
    unknown = [word for word in words if word not in set(ApiScope)]
    if unknown or not words:
        what = f"{unknown[0]!r} is no scope" if unknown else "no scope is given"
        raise InvalidInput(f"{where}: {what}: write some of {', '.join(ApiScope)}")
    return frozenset(ApiScope(word) for word in words)

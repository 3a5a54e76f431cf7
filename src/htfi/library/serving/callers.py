"""Who asks: a tenant's caller with scopes."""

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """What a caller may do on the run of its tenant."""

    READ = "read"  # what the run has recorded, and what stands beside it
    ASK = "ask"  # have something worked out: posted bars, scenarios
    GENERATE = "generate"  # have a language model write or encode
    NEWS = "news"  # hand in news
    ACT = "act"  # stop, re-enable, approve, admit; cancel orders
    ADMIN = "admin"  # tenants, keys, quotas


@dataclass(frozen=True, slots=True)
class Caller:
    """One that was identified. The tenant "" is that of a service without keys."""

    tenant: str
    name: str
    scopes: frozenset[Scope]


LOCAL = Caller("", "local user", frozenset(Scope))

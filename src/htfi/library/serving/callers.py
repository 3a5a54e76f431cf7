"""Who asks: a tenant's caller with scopes."""

from dataclasses import dataclass

from htfi.tenancy.scopes import ApiScope as Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """One that was identified. The tenant "" is that of a service without keys; `key` is its id in usage.

    `person` is whom it stands for in a directory of people; empty for no person.
    """

    tenant: str
    name: str
    scopes: frozenset[Scope]
    key: str = ""
    person: str = ""
    is_by_token: bool = False
    until_ns: int | None = None  # UTC, of a token
    refusal: str = ""  # why scopes that the key has are withheld


LOCAL = Caller("", "local user", frozenset(Scope))
UNIDENTIFIED = Caller("", "unidentified", frozenset())  # at a path that needs no key

"""What a service's folder says: service.toml, its tenants, prices, issuers of tokens, addresses."""

import re
import tomllib
from typing import Annotated, Literal

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.tenancy.quotas import DEFAULT_BURST, DEFAULT_REQUESTS_PER_S, Quota
from htfi.tenancy.usage import UsagePrices

SERVICE_FILE = "service.toml"
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
WEIGHTS = {"interactive": 4.0, "standard": 2.0, "batch": 1.0}  # shares of what takes long
PriorityClass = Literal["interactive", "standard", "batch"]


class TenantConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant. Paths are of the service's folder. With `files` (`["sample"]`: the embedded one) its run is started."""

    run: str
    files: tuple[str, ...] = ()
    settings: str = ""
    governance: str = ""  # folder whose people.toml and rules decide what its callers may do
    priority: PriorityClass = "standard"
    quota: Quota = Quota(requests_per_s=DEFAULT_REQUESTS_PER_S, burst=DEFAULT_BURST)


class IssuerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who issues tokens (JWT) that are believed. `keys`: a JWKS, a file of the service's folder or an https address.

    `tenants` maps values of the claim `tenant_claim` to tenants; empty: the value is the tenant's name. `scopes` maps
    words of the claim `scopes_claim` to scopes; empty: the words are the scopes.
    """

    issuer: str
    audience: str
    keys: str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    tenant_claim: str = "tenant"
    scopes_claim: str = "scope"
    person_claim: str = "sub"
    tenants: dict[str, str] = {}
    scopes: dict[str, tuple[str, ...]] = {}


class RetentionTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how many days what is kept, where it is not as long as by default.

    `classes`: of what runs record, by class of retention; `usage`: rows of what tenants used.
    """

    usage: Annotated[int, msgspec.Meta(ge=31, le=36_500)] = 3 * 366
    classes: dict[str, Annotated[int, msgspec.Meta(ge=0, le=36_500)]] = {}


class ServiceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as a whole. `database`: empty for service.db in the folder, else postgresql://user@host/name."""

    tenants: dict[str, TenantConfig]
    database: str = ""
    names: tuple[str, ...] = ()  # host names, besides this machine's, under which the service is asked
    proxies: tuple[str, ...] = ()  # addresses whose X-Forwarded-For is believed; they end TLS
    prices: UsagePrices = UsagePrices()
    issuers: tuple[IssuerConfig, ...] = ()
    retention: RetentionTerms = RetentionTerms()


def parse_service(text: str, where: str) -> ServiceConfig:
    """Raises: InvalidInput, naming what is wrong."""
    try:
        found = msgspec.convert(tomllib.loads(text), ServiceConfig)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidInput(f"{where}: is no service's file: {error}") from error
    if not found.tenants:
        raise InvalidInput(f"{where}: there is no tenant: write a table [tenants.NAME] with run = FOLDER")
    for name in found.tenants:
        if not _TENANT.fullmatch(name):
            raise InvalidInput(f"{where}: tenant {name!r}: use a-z, 0-9, - and _, 63 letters at most")
    folders = [one.run for one in found.tenants.values()]
    if len(set(folders)) != len(folders):
        raise InvalidInput(f"{where}: two tenants have the same run: give each a folder of its own")
    issuers = [one.issuer for one in found.issuers]
    if len(set(issuers)) != len(issuers):
        raise InvalidInput(f"{where}: an issuer is there twice: keep one")
    for issuer in found.issuers:
        _check_issuer(issuer, found, where)
    return found


def _check_issuer(issuer: IssuerConfig, service: ServiceConfig, where: str) -> None:
    wrong = [one for one in issuer.algorithms if one not in _ALGORITHMS]
    if wrong or not issuer.algorithms:
        raise InvalidInput(
            f"{where}: issuer {issuer.issuer}: algorithms must be asymmetric: some of {', '.join(_ALGORITHMS)}"
        )
    if not issuer.audience:
        raise InvalidInput(f"{where}: issuer {issuer.issuer}: name the audience that its tokens are for")
    unknown = [one for one in issuer.tenants.values() if one not in service.tenants]
    if unknown:
        raise InvalidInput(f"{where}: issuer {issuer.issuer}: there is no tenant {unknown[0]!r}")

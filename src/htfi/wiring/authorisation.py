"""Who may act, from a governance folder: its directory of people and its rules. Commands and runs call it."""

from pathlib import Path
from typing import NamedTuple

from htfi.adapters.keys.ed25519 import load_key, verify_signature
from htfi.domain.errors import AccessDenied, DependencyUnavailable, InvalidInput
from htfi.governance.authorisation import (
    AccessRequest,
    AccessResource,
    Authoriser,
    require_access,
)
from htfi.governance.people import (
    PEOPLE_FILE,
    PeopleDirectory,
    RequestStatement,
    identify,
    parse_people,
    sign_statement,
)


class GovernanceAccess(NamedTuple):
    """The people of a governance folder and the rules that decide what they may do."""

    directory: PeopleDirectory
    authoriser: Authoriser


class SignedRequest(NamedTuple):
    """A person's request that was allowed: who made it, and the signed note."""

    by: str
    note: str


def open_access(governance: Path) -> GovernanceAccess:
    """Raises: InvalidInput, MissingExtra, DependencyUnavailable."""
    from htfi.adapters.cedar.authoriser import load_authoriser

    path = governance / PEOPLE_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no {path}: it names the people and what they may do (docs/authorisation.md)"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not UTF-8 text") from error
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {path}: {error.strerror}") from error
    return GovernanceAccess(parse_people(text, str(path)), load_authoriser(governance))


def sign_with(key_path: Path, statement: RequestStatement) -> str:
    """The signed note of a statement. Raises: InvalidInput, DependencyUnavailable."""
    key = load_key(key_path)
    return sign_statement(statement, key.verifier_key, key)


def name_of_key(key_path: Path, directory: PeopleDirectory) -> str:
    """The person whose key it is. Raises: InvalidInput, AccessDenied where it is nobody's, DependencyUnavailable."""
    principal = directory.by_key.get(load_key(key_path).verifier_key)
    if principal is None:
        raise AccessDenied(f"{key_path} is the key of no person in {PEOPLE_FILE}: add its verifier key there")
    return principal.id


def sign_and_require(
    access: GovernanceAccess, key_path: Path, statement: RequestStatement, resource: AccessResource
) -> SignedRequest:
    """Sign a statement with a person's key, and require that this person may act on the resource.

    Raises: AccessDenied, InvalidInput, DependencyUnavailable.
    """
    note = sign_with(key_path, statement)
    principal, _ = identify(note, access.directory, verify_signature)
    require_access(
        access.authoriser, AccessRequest(principal, statement.action, resource, statement.at_ns)
    )  # fmt: skip
    return SignedRequest(principal.id, note)

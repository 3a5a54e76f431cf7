"""Decides requests for access by Cedar rules, always with the schema. Implements the port `Authoriser`.

Cedar skips a rule whose evaluation errs, so an erring forbid reads as Allow. Here any error denies, and rules that do
not agree with the schema are refused when they are read. Source: Cedar 4 language reference, "Authorization".
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from htfi.domain.errors import DependencyUnavailable, InvalidInput, require_extra
from htfi.governance.authorisation import (
    AccessDecision,
    AccessRequest,
    AccessResource,
    Principal,
    PrincipalKind,
    ResourceKind,
)

RULES_FOLDER = "authorisation"  # of a governance folder
_HERE = Path(__file__).parent
_SCHEMA = _HERE / "default.cedarschema"
_RULES = _HERE / "default.cedar"
_MAX_BATCH = 50  # larger sets of entities take longer to read than the calls they spare
_MAX_RULES_BYTES = 1 << 20
_PRINCIPAL_TYPES = {PrincipalKind.PERSON: "Person", PrincipalKind.NODE: "Node"}
_MAX_TIME_NS = 2**63 - 1

Entity = dict[str, Any]


class CedarAuthoriser:
    """Rules, parsed and checked once; each request brings its principal and its resource."""

    def __init__(self, rules: str, where: str) -> None:
        """`where` names the rules in messages. Raises: MissingExtra, InvalidInput."""
        require_extra("authorisation", "governance", "cedarpy")
        cedarpy: Any = import_module("cedarpy")
        self._cedar = cedarpy
        schema = _SCHEMA.read_text(encoding="utf-8")
        try:
            self._schema = cedarpy.Schema.from_str(schema)
            self._rules = cedarpy.PolicySet.from_str(rules)
            checked = cedarpy.validate_policies(rules, schema)
        except ValueError as error:
            raise InvalidInput(f"{where}: is not a set of Cedar rules: {_one_line(error)}") from error
        if not checked.validation_passed:
            first = checked.errors[0]
            raise InvalidInput(f"{where}: a rule does not agree with the schema: {_one_line(first.error)}")

    def decide(self, request: AccessRequest) -> AccessDecision:
        """Allow only where a rule permits, none forbids and none errs."""
        return self.decide_all((request,))[0]

    def decide_all(self, requests: Sequence[AccessRequest]) -> list[AccessDecision]:
        """The same for many, in order."""
        decided: list[AccessDecision] = []
        batch: list[Entity] = []
        entities: dict[tuple[str, str], Entity] = {}
        for request in requests:
            brought = (_principal_entity(request.principal), _resource_entity(request.resource))
            if len(batch) == _MAX_BATCH or any(
                entities.get(_key(one), one) != one for one in brought
            ):  # of two that differ under one name each is decided by its own
                decided += self._decide_batch(batch, entities)
                batch, entities = [], {}
            entities |= {_key(one): one for one in brought}
            batch.append(_cedar_request(request))
        return [*decided, *self._decide_batch(batch, entities)]

    def _decide_batch(
        self, batch: list[Entity], entities: dict[tuple[str, str], Entity]
    ) -> list[AccessDecision]:
        if not batch:
            return []
        try:
            results = self._cedar.is_authorized_batch(
                batch, self._rules, list(entities.values()), self._schema
            )
            return [_decision_of(result) for result in results]
        except Exception as error:  # noqa: BLE001 - whatever the library raises, nobody is let in by it
            return [AccessDecision(False, f"it could not be decided: {_one_line(error)}")] * len(batch)


def load_authoriser(governance: Path) -> CedarAuthoriser:
    """By the rules in G/authorisation/*.cedar, all of them; where it has none, by those that are shipped.

    Raises: InvalidInput, MissingExtra, DependencyUnavailable.
    """
    paths = sorted((governance / RULES_FOLDER).glob("*.cedar")) or [_RULES]
    try:
        if sum(path.stat().st_size for path in paths) > _MAX_RULES_BYTES:
            raise InvalidInput(f"{paths[0].parent}: the rules are larger than {_MAX_RULES_BYTES >> 10} kB")
        rules = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{paths[0].parent}: a file of rules is not UTF-8 text") from error
    except OSError as error:
        raise DependencyUnavailable(f"cannot read {error.filename}: {error.strerror}") from error
    return CedarAuthoriser(rules, str(paths[0] if len(paths) == 1 else paths[0].parent))


def default_rules() -> str:
    """The rules that are shipped."""
    return _RULES.read_text(encoding="utf-8")


def _decision_of(result: Any) -> AccessDecision:
    errors = result.diagnostics.errors
    names = result.diagnostics.id_annotations_by_reason
    rules = tuple(sorted(names.get(rule, rule) for rule in result.diagnostics.reasons))
    if errors:
        return AccessDecision(False, f"a rule or the request could not be evaluated: {_one_line(errors[0])}")
    match result.decision.value:
        case "Allow":
            return AccessDecision(True, f"allowed by {', '.join(rules)}", rules)
        case "Deny" if rules:
            return AccessDecision(False, f"forbidden by {', '.join(rules)}", rules)
        case "Deny":
            return AccessDecision(False, "no rule allows it")
        case _:
            return AccessDecision(False, "the rules came to no decision")


def _cedar_request(request: AccessRequest) -> Entity:
    return {
        "principal": _name(_PRINCIPAL_TYPES[request.principal.kind], request.principal.id),
        "action": _name("Action", request.action.value),
        "resource": _name(_resource_type(request.resource), request.resource.id),
        "context": {"at_ns": request.at_ns, "is_escalated": request.is_escalated},
    }


def _principal_entity(principal: Principal) -> Entity:
    attributes: Entity = {
        "name": principal.id, "tenant": principal.tenant, "desks": sorted(set(principal.desks)),
    }  # fmt: skip
    if principal.kind is PrincipalKind.PERSON and principal.until_ns is not None:
        attributes["until_ns"] = min(principal.until_ns, _MAX_TIME_NS)
    return {
        "uid": _name(_PRINCIPAL_TYPES[principal.kind], principal.id),
        "attrs": attributes,
        "parents": [_name("Role", role) for role in sorted(set(principal.roles))],
    }


def _resource_entity(resource: AccessResource) -> Entity:
    attributes: Entity = {"tenant": resource.tenant, "desks": sorted(set(resource.desks))}
    if resource.kind is ResourceKind.SCOPE:
        attributes["level"] = resource.scope_level
    elif resource.kind is ResourceKind.MODEL:
        attributes["proposed_by"] = resource.proposed_by
    return {"uid": _name(_resource_type(resource), resource.id), "attrs": attributes, "parents": []}


def _resource_type(resource: AccessResource) -> str:
    return resource.kind.value.capitalize()


def _name(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": name}


def _key(entity: Entity) -> tuple[str, str]:
    return entity["uid"]["type"], entity["uid"]["id"]


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:200]

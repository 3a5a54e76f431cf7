"""An item understood, as one line of JSON (docs/facts.md names its fields)."""

import math
from typing import Any

import msgspec

from htfi.narrative.facts.statements.compared import ComparedDocument
from htfi.narrative.facts.statements.comparison import ChangeKind
from htfi.narrative.understanding import Understanding


def as_line(one: Understanding) -> dict[str, Any]:
    """Plain values; what an item in quarantine says moves nothing."""
    facts, reading = one.facts, one.reading
    speaks = one.speaks
    return {
        "screening": one.screened.verdict.value,
        "findings": [f"{found.rule}: {found.detail}" for found in one.screened.findings],
        "relevance": reading.relevance,
        "event": facts.event.value,
        "event_confidence": facts.event_confidence,
        "modality": facts.modality.value,
        "tense": facts.tense.value,
        "negated": facts.negated,
        "roles": [
            {
                "role": party.role.value,
                "name": party.name,
                "symbols": list(party.symbols),
                "effect": party.effect,
                "confidence": party.confidence,
            }
            for party in facts.parties
        ],
        "role": None if reading.role is None else reading.role.value,
        "figures": [msgspec.to_builtins(figure) for figure in facts.figures],
        "surprises": [_without_nan(msgspec.to_builtins(surprise)) for surprise in facts.surprises],
        "action": None if facts.action is None else msgspec.to_builtins(facts.action),
        "body": None if facts.body is None else msgspec.to_builtins(facts.body),
        "document": None if one.document is None else _document(one.document),
        "direction": round(reading.direction * abs(reading.score), 3) if speaks else 0.0,
        "size_sigmas": reading.size_sigmas if speaks else 0.0,
        "volatility": reading.volatility if speaks else 1.0,
        "confidence": reading.confidence,
        "abstains": not speaks,
        "why": one.why_silent,
        "lines": list(reading.lines),
        "words": one.words,
    }


def _document(one: ComparedDocument) -> dict[str, Any]:
    """What changed in a central bank's document: in words, and each sentence that came, went or changed."""
    changes = [change for change in one.comparison.changes if change.kind is not ChangeKind.SAME]
    return {
        "kind": one.kind.value,
        "words": list(one.lines),
        "changes": [{"kind": change.kind.value, "old": change.old, "new": change.new} for change in changes],
    }


def _without_nan(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }

"""The verdict on a news item: pass, discount or quarantine, by its findings and the belief in its source."""

from collections.abc import Iterable

from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import Screening, ScreeningFinding
from htfi.narrative.sanitising.config import GOOD_CREDIBILITY, NOTED_BELOW, SanitiserConfig
from htfi.narrative.sanitising.impersonation import Provenance
from htfi.narrative.sanitising.item_text import clean_field
from htfi.narrative.sanitising.sources import (
    NEWCOMER_TRUST,
    NewcomerRegister,
    SourceBelief,
    SourceKind,
)

_OPEN_KINDS = frozenset((SourceKind.UNKNOWN, SourceKind.SOCIAL))  # feeds to which anybody may post
_OFFICIAL_NOTE, _OFFICIAL_ORDER = 0.2, 0.6  # strongest finding on the text of an official body
_PLAIN_ORDER = 0.8  # an honest title may sound like an order nearly as much


def judge_item(
    item: News, findings: list[ScreeningFinding], belief: SourceBelief, config: SanitiserConfig
) -> tuple[Screening, float, list[ScreeningFinding]]:
    """Verdict and trust (0–1) by the findings on an item and the belief in its voice, and all reasons."""
    if item.released_by:
        findings.append(
            ScreeningFinding(
                "released", 0.0, f"admitted from quarantine by {clean_field(item.released_by, 90)}"
            )
        )
        return Screening.PASS, 1.0, findings
    doubt = combined_strength(findings)
    credit = round(min(belief.current_credibility / GOOD_CREDIBILITY, 1.0), 3)
    if credit < 1.0:  # it lowers an item's trust, and holds nothing back by itself
        findings.append(
            ScreeningFinding(
                "standing",
                round(1.0 - credit, 3),
                f"the standing of its source is {belief.current_credibility:.2f}",
            )
        )
    if doubt >= config.quarantine_at:
        return Screening.QUARANTINE, 0.0, findings
    trust = round((1.0 - doubt) * credit, 3)
    return (
        Screening.DISCOUNT if trust <= 1.0 - config.discount_at else Screening.PASS,
        trust,
        findings,
    )


def judge_newcomer(
    item: News,
    origin: Provenance,
    verdict: Screening,
    trust: float,
    findings: list[ScreeningFinding],
    newcomers: NewcomerRegister,
    now_ns: int,
) -> tuple[Screening, float]:
    """A voice that is new here counts for little alone, however well it writes: verdict and trust with that, whose
    reason joins the `findings`.
    """
    if item.released_by or origin.by_feed:
        return verdict, trust
    if origin.proven:  # by its link: its feed gains from it
        newcomers.judge(item.source, now_ns)
        return verdict, trust
    if origin.kind not in _OPEN_KINDS:
        return verdict, trust
    new = newcomers.judge(origin.voice, now_ns)
    if new is None or verdict is Screening.QUARANTINE:
        return verdict, trust
    findings.append(new)
    return Screening.DISCOUNT, min(trust, NEWCOMER_TRUST)


def combined_strength(findings: Iterable[ScreeningFinding]) -> float:
    """The chance that at least one finding is right; findings of one rule count once."""
    worst: dict[str, float] = {}
    for one in findings:
        if one.strength >= NOTED_BELOW:
            worst[one.rule] = max(worst.get(one.rule, 0.0), one.strength)
    right = 1.0
    for strength in worst.values():
        right *= 1.0 - strength
    return round(1.0 - right, 3)


def as_of_official(finding: ScreeningFinding) -> ScreeningFinding:
    """A finding on the text of an official body: it is noted and counts for nothing. A plain order to a model, where a
    stranger may have got in, discounts the item and never holds it back.
    """
    is_order = finding.rule == "injection" and finding.strength >= _PLAIN_ORDER
    return replace(finding, strength=min(finding.strength, _OFFICIAL_ORDER if is_order else _OFFICIAL_NOTE))

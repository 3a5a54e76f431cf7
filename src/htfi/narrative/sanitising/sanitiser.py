"""Screens every news item before anything else reads it: pass, discount or quarantine, always with reasons (D11).

`screen` is called on each item in order of `available_at_ns`. The same items in the same order give the same verdicts,
on any machine and across a restart.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening, ScreeningFinding
from htfi.narrative.sanitising.bursts import BurstDetector, BurstItem
from htfi.narrative.sanitising.config import (
    GOOD_CREDIBILITY,
    MAX_SOURCES,
    MAX_SYMBOLS_MOVED,
    SanitiserConfig,
)
from htfi.narrative.sanitising.contradictions import Claimant, ClaimIndex, Contradiction, judge_altered_copy
from htfi.narrative.sanitising.duplicates import DuplicateIndex, SimilarItems, StoryItem
from htfi.narrative.sanitising.impersonation import ImpersonationChecker, Provenance
from htfi.narrative.sanitising.incidents import ScreeningIncident
from htfi.narrative.sanitising.item_text import (
    MAX_ID_CHARS,
    UndisguisedText,
    clean_field,
    displayable,
    undisguise,
)
from htfi.narrative.sanitising.sources import (
    NewcomerRegister,
    SourceBelief,
    SourceKind,
    SourceReputation,
)
from htfi.narrative.sanitising.text_features import CORRECTS, TextFeatures, text_features
from htfi.narrative.sanitising.timestamps import TimestampChecker
from htfi.narrative.sanitising.verdicts import as_of_official, judge_item, judge_newcomer

_MIN_CREDIBILITY = 0.7  # from here on a voice has credit
_MIN_CONFIRMING_TRUST = 0.9  # trust in an item that confirms a story
_DISCOUNTED_SHARE = 0.4  # of a discounted item's influence, beside its trust
_MIN_CONFIRMING_SOURCES = 2  # sources that confirm a story
_MIN_LARGE_MOVE_SIGMAS = 3.0  # standard deviations
_FEED_BLAME_SHARE = 0.2  # of a voice's blame that falls on the feed it came through


class Sanitiser:
    """Screens items one by one; what it remembers between them is bounded."""

    def __init__(self, config: SanitiserConfig | None = None) -> None:
        self._config = config = config or SanitiserConfig()
        self._duplicates, self._sources = DuplicateIndex(config), SourceReputation(MAX_SOURCES)
        self._bursts, self._claims, self._instants = (
            BurstDetector(config),
            ClaimIndex(config),
            TimestampChecker(config),
        )
        self._impersonation = ImpersonationChecker(config)
        self._newcomers = NewcomerRegister(MAX_SOURCES)
        self._incidents: list[ScreeningIncident] = []
        self._invalidated: list[str] = []
        self._now_ns = 0

    def screen(self, item: News, shown: UndisguisedText | None = None) -> ScreenedItem:
        """The item cleaned, with a verdict and its reasons; `shown` is its `undisguise`, where that was done before."""
        self._now_ns = now_ns = max(item.available_at_ns, self._now_ns)
        shown = shown or self.undisguise(item)
        findings = list(shown.findings)
        item = replace(
            item,
            id=clean_field(item.id, MAX_ID_CHARS) or f"{item.source}:{item.row}",
            headline=shown.headline,
            body=shown.body,
            corrects=clean_field(item.corrects, MAX_ID_CHARS),
        )
        if len(item.symbols) > (most := MAX_SYMBOLS_MOVED):
            findings.append(
                ScreeningFinding(
                    "symbols", 0.2, f"names {len(item.symbols)} symbols, of which the first {most} count"
                )
            )
            item = replace(item, symbols=item.symbols[:most])
        features = text_features(item.headline, item.body)
        origin = self._provenance(item)
        if origin.is_official:
            findings = [as_of_official(one) for one in findings]
        findings += origin.findings
        belief = self._source_belief(origin, item.source)
        who = Claimant(origin.voice, belief.credibility)
        if item.released_by:
            self._sources.record_admitted(origin.voice, now_ns)
        else:
            item = self._with_own_id(item, origin.voice)
        alike = self._duplicates.find(features, item.symbols, now_ns)
        if (instant := self._instants.judge(item, features.words, features.direction)) is not None:
            findings.append(instant)
        findings += self._burst_findings(item, features, alike, origin, belief)
        findings += self._contradiction_findings(item, features, alike, who)
        if not item.corrects and features.way & CORRECTS:  # its text alone says that it corrects one
            original = self._duplicates.own_original(alike.signature, origin.voice, item.source, item.symbols)
            item = replace(item, corrects=original)
        if item.corrects:
            findings += self._correction_findings(item, origin)
        verdict, trust, findings = judge_item(item, findings, belief, self._config)
        verdict, trust = judge_newcomer(item, origin, verdict, trust, findings, self._newcomers, now_ns)
        return self._record(item, features, alike, origin, verdict, trust, findings)

    def undisguise(self, item: News) -> UndisguisedText:
        """The item's text without hidden text and disguises, and the findings on them; of the item alone."""
        return undisguise(item, is_official=self.is_official(item.source))

    def _provenance(self, item: News) -> Provenance:
        """Where an item comes from; an item's link proves nothing in a feed that is new here."""
        origin = self._impersonation.judge(item, item.headline, item.body)
        if not origin.proven or origin.by_feed or not self._newcomers.is_new(item.source):
            return origin
        self._newcomers.judge(item.source, self._now_ns)
        return Provenance(
            f"{item.source}/{origin.voice}", self._impersonation.kind(item.source), False, origin.findings
        )

    def _with_own_id(self, item: News, voice: str) -> News:
        """An id that another voice's item has already is changed, so that neither replaces the other."""
        holder = self._duplicates.item(item.id)
        if holder is None or holder.source == voice:
            return item
        return replace(item, id=clean_field(f"{item.source}:{item.row}:{item.id}", MAX_ID_CHARS))

    def _source_belief(self, origin: Provenance, source: str) -> SourceBelief:
        """The belief in the voice; unless it is proven, no more than in the feed that it came through."""
        belief = self._sources.belief(origin.voice, self._now_ns, origin.kind)
        if origin.proven or origin.voice == source:
            return belief
        through = self._sources.belief(source, self._now_ns)
        return (
            through
            if through.evidence and through.current_credibility < belief.current_credibility
            else belief
        )

    def _burst_findings(
        self,
        item: News,
        features: TextFeatures,
        alike: SimilarItems,
        origin: Provenance,
        belief: SourceBelief,
    ) -> Iterable[ScreeningFinding]:
        if item.released_by:
            return ()
        low = belief.credibility < _MIN_CREDIBILITY and (origin.kind is SourceKind.SOCIAL or not belief.known)
        names = tuple(sorted(features.names)) if low else ()
        burst_item = BurstItem(
            item.id, self._now_ns, origin.voice, low, features.direction, alike.signature, names
        )
        burst = self._bursts.observe(burst_item, item.symbols)
        if low and item.symbols and "$" in item.headline + item.body:
            flood = self._bursts.judge_cashtag_flood(origin.voice, item.symbols, self._now_ns)
            if flood is not None and burst.finding is None:
                return (flood,)
        if burst.finding is None:
            return ()
        if burst.finding.strength >= self._config.quarantine_at:
            self._invalidate(burst.members)
        return (burst.finding,)

    def _contradiction_findings(
        self, item: News, features: TextFeatures, alike: SimilarItems, who: Claimant
    ) -> Iterable[ScreeningFinding]:
        judged = [self._claims.observe(item.id, features, item.symbols, who, self._now_ns)]
        if alike.near is not None:
            believed = self._sources.belief(alike.near.source, self._now_ns).credibility
            story = self._duplicates.cluster(alike.near.cluster)
            voices = story.voices if story is not None else ()
            judged.append(judge_altered_copy(alike, features, who, max(believed, alike.near.credit), voices))
        for one in judged:
            self._apply_contradiction(one, who)
        return [one.finding for one in judged if one.finding is not None]

    def _apply_contradiction(self, found: Contradiction, who: Claimant) -> None:
        for name, voice in found.fallen:
            self._invalidate((name,))
            if voice != who.voice:
                self._sources.record_contradicted(voice, 2.0 * who.credibility, self._now_ns)

    def _correction_findings(self, item: News, origin: Provenance) -> Iterable[ScreeningFinding]:
        """A source may correct its own items, through the feed of the original; a correction by others is a finding."""
        earlier = self._duplicates.item(item.corrects)
        if earlier is None:
            return ()
        own = earlier.source == origin.voice and (earlier.feed == item.source or origin.by_feed)
        if not own:
            act = "retract" if item.retracts else "correct"
            strength = 0.6 if earlier.feed == item.source else 0.8  # a feed may leave out its original source
            return (ScreeningFinding("contradicted", strength, f"tries to {act} an item of another source"),)
        self._invalidate((earlier.id,))
        self._sources.record_contradicted(earlier.source, 0.5 if item.retracts else 0.2, self._now_ns)
        return ()

    def _record(
        self,
        item: News,
        features: TextFeatures,
        alike: SimilarItems,
        origin: Provenance,
        verdict: Screening,
        trust: float,
        findings: list[ScreeningFinding],
    ) -> ScreenedItem:
        credit = self._sources.belief(origin.voice, self._now_ns, origin.kind).credibility
        same = alike.same
        if same is not None and same.trust < 0.5 * trust:
            same = None  # the earlier one could not be believed: this one is the first
        if (
            same is not None
            and same.source != origin.voice
            and credit >= _MIN_CREDIBILITY
            and verdict is Screening.PASS
        ):
            self._credit_first_source(same, credit)
        cluster = same.cluster if same is not None else item.id
        story_item = StoryItem(
            item.id, origin.voice, self._now_ns, cluster, alike.signature, tuple(sorted(features.figures)),
            tuple(sorted(features.names)), item.symbols, features.way, trust, credit, item.source, alike.bands,
        )  # fmt: skip
        is_borne = verdict is Screening.PASS and trust >= _MIN_CONFIRMING_TRUST
        believed = (origin.voice if origin.proven else item.source) if is_borne else ""
        story = self._duplicates.add(
            story_item, believed, is_borne and origin.proven and origin.kind is SourceKind.OFFICIAL
        )
        if verdict is Screening.QUARANTINE:
            self._blame_source(item, origin, findings)
        else:
            self._sources.record_passed(origin.voice, self._now_ns, origin.kind)
        digest = blake2b(
            f"{item.headline}\n{item.body}".encode("utf-8", "replace"), digest_size=16
        ).hexdigest()
        return ScreenedItem(
            item=displayable(item),
            verdict=verdict,
            trust=trust,
            findings=tuple(findings),
            cluster=cluster,
            num_alike=story.num_alike,
            digest=digest,
        )

    def _credit_first_source(self, earlier: StoryItem, credit: float) -> None:
        """The first source of a story is confirmed by one with credit; a repeating source gains nothing."""
        story = self._duplicates.cluster(earlier.cluster)
        first = self._duplicates.item(earlier.cluster)
        if first is not None and story is not None and len(story.voices) == 1:
            self._sources.record_confirmed(first.source, round(0.5 * credit, 3), self._now_ns)

    def _blame_source(self, item: News, origin: Provenance, findings: Iterable[ScreeningFinding]) -> None:
        gravest = max(findings, key=lambda one: one.strength)
        self._incidents.append(ScreeningIncident(item.source, item.symbols, gravest.rule, self._now_ns))
        self._sources.record_held_back(origin.voice, 1.0, self._now_ns, origin.kind)
        if origin.voice != item.source:
            self._sources.record_held_back(item.source, _FEED_BLAME_SHARE, self._now_ns)

    def _invalidate(self, names: Iterable[str]) -> None:
        """Mark passed items as no longer valid: nothing is a repetition of them."""
        for name in names:
            story_item = self._duplicates.item(name)
            if story_item is not None and story_item.trust:
                story_item.trust = 0.0
                self._invalidated.append(name)

    def learn_price_effect(self, item_id: str, direction: float, return_sigmas: float) -> None:
        """Learn what followed an item: the direction −1..1 that was read in it, and the return in standard
        deviations.
        """
        story_item = self._duplicates.item(item_id)
        moved = min(abs(return_sigmas) / 2.0, 1.0)
        if story_item is None or moved < 0.25 or not direction:
            return
        weight = round(moved * min(abs(direction), 1.0), 3)
        self._sources.record_price_move(
            story_item.source, weight, direction * return_sigmas > 0.0, self._now_ns
        )

    def observe_return(self, symbol: str, at_ns: int, return_sigmas: float) -> None:
        """A symbol's return over a bar that ended at an instant; a large one exposes items dated before it that came
        after it.
        """
        if abs(return_sigmas) >= _MIN_LARGE_MOVE_SIGMAS:
            self._instants.observe_move(symbol, at_ns, 1 if return_sigmas > 0.0 else -1)

    def max_influence(self, screened: ScreenedItem) -> float:
        """The share of a forecast's 90% band that an item may move, whatever its reader's track record: more if several
        believed sources confirm it, or an official one.
        """
        story = self._duplicates.cluster(screened.cluster)
        confirmed = story is not None and (
            story.is_official or len(story.believed) >= _MIN_CONFIRMING_SOURCES
        )
        most = self._config.max_influence_confirmed if confirmed else self._config.max_influence_unconfirmed
        return (
            round(_DISCOUNTED_SHARE * most * screened.trust, 6)
            if screened.verdict is Screening.DISCOUNT
            else most
        )

    def is_official(self, source: str) -> bool:
        """Whether a feed is an official body's, by the name, address or kind that the operator gave it."""
        return self._impersonation.kind(source) is SourceKind.OFFICIAL

    @property
    def max_symbols_moved(self) -> int:
        """The number of symbols that one item may move."""
        return MAX_SYMBOLS_MOVED

    def current_credibility(self, source: str) -> float:
        """How far a source is believed now, 0–1: its credibility, less after recent incidents."""
        return round(self._sources.belief(source, self._now_ns).current_credibility, 3)

    def reading_suspicion(self, sources: Iterable[str]) -> float:
        """How far readings for these sources should queue behind others, 0–1: by the least believed of them."""
        least = min((self.current_credibility(source) for source in sources), default=1.0)
        return round(1.0 - min(least / GOOD_CREDIBILITY, 1.0), 3)

    def take_incidents(self) -> list[ScreeningIncident]:
        """Items held back since the last call."""
        taken, self._incidents = self._incidents, []
        return taken

    def take_invalidated(self) -> list[str]:
        """Ids of items that were corrected, retracted or contradicted since the last call."""
        taken, self._invalidated = self._invalidated, []
        return taken

    def state(self) -> dict[str, Any]:
        return {
            "now_ns": self._now_ns,
            "duplicates": self._duplicates.state(),
            "sources": self._sources.state(),
            "bursts": self._bursts.state(),
            "claims": self._claims.state(),
            "newcomers": self._newcomers.state(),
            "instants": self._instants.state(),
            "troubles": [msgspec.to_builtins(trouble) for trouble in self._incidents],
            "invalidated": list(self._invalidated),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._now_ns = state["now_ns"]
        self._duplicates.restore(state["duplicates"])
        self._sources.restore(state["sources"])
        self._bursts.restore(state["bursts"])
        self._claims.restore(state["claims"])
        self._newcomers.restore(state["newcomers"])
        self._instants.restore(state["instants"])
        self._incidents = [msgspec.convert(trouble, ScreeningIncident) for trouble in state["troubles"]]
        self._invalidated = list(state["invalidated"])

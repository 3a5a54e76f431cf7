"""Finds items that claim to come from another source: names, links and datelines that do not fit.

A name proves nothing by itself: it is the publisher's if the link leads to the publisher, or if the feed was given that
name.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from htfi.domain.events import News
from htfi.domain.news import ScreeningFinding
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.publishers import Publisher, folded, host_of, publisher_registry
from htfi.narrative.sanitising.sources import KINDS, SourceKind
from htfi.narrative.text import one_line

IMPERSONATION_RULE = "impersonation"
_DATELINE = re.compile(r"\(([A-Z][\w .]{1,30})\)\s*[-–—]")
_SPLIT = re.compile(r"[^a-z0-9]+")
_SOCIAL_NAMES = frozenset(
    (
        "twitter",
        "tweets",
        "x",
        "telegram",
        "reddit",
        "stocktwits",
        "discord",
        "social",
        "forum",
        "posts",
        "weibo",
    )
)
_MAX_NAME_CHARS = 128
_MAX_REMEMBERED = 4096


class Provenance(NamedTuple):
    """Who an item is believed to come from.

    `voice` is the name that its credit and blame go to, `kind` the voice's kind; `proven` marks a publisher that is who
    it claims to be, `by_feed` a feed that has the publisher's name itself: a link is written by the item's writer, and
    proves nothing in a feed to which anybody may post. `is_official` marks an official body's own words: the operator
    gave the feed that body's name, address or kind, and nothing in the item names another.
    """

    voice: str
    kind: SourceKind
    proven: bool
    findings: tuple[ScreeningFinding, ...]
    by_feed: bool = False
    is_official: bool = False


class ImpersonationChecker:
    """Judges where items come from; its results are cached."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._registry = publisher_registry(config.publishers)
        self._kinds: Mapping[str, str] = dict(config.source_kinds)
        self._judged: OrderedDict[tuple[str, str, str], Provenance] = OrderedDict()
        self._kinds_found: OrderedDict[str, SourceKind] = OrderedDict()

    def judge(self, item: News, headline: str, body: str) -> Provenance:
        """Where an item comes from. `headline` and `body` are deobfuscated, its other fields as they came."""
        key = (item.source, item.publisher[:_MAX_NAME_CHARS], host_of(item.url) if item.url else "")
        known = self._judged.get(key)
        if known is None:
            known = self._provenance(*key)
            if self._is_official(item.source, key[1], known):
                known = known._replace(is_official=True)
            self._judged[key] = known
            if len(self._judged) > _MAX_REMEMBERED:
                self._judged.popitem(last=False)
        if "(" not in headline and "(" not in body[:80]:
            return known
        claimed = self._dateline(f"{headline} {body[:80]}", known, item.source)
        if claimed is None:
            return known
        return known._replace(findings=(*known.findings, claimed), is_official=False)

    def _is_official(self, source: str, publisher: str, known: Provenance) -> bool:
        """Whether a feed is an official body's and the item its own: what others file with it is theirs."""
        if known.findings or self.kind(source) is not SourceKind.OFFICIAL:
            return False
        own = self._registry.named(source) or self._publisher_of_feed(source)
        if publisher and (own is None or self._registry.named(publisher) is not own):
            return False
        return not self._registry.names_filings(publisher or source)

    def _provenance(self, source: str, publisher: str, host: str) -> Provenance:
        registry = self._registry
        findings: list[ScreeningFinding] = []
        own = registry.named(source) or self._publisher_of_feed(source)
        if own is None and (like := registry.looks_like(source)) is not None:
            findings.append(
                ScreeningFinding(
                    IMPERSONATION_RULE, 0.8, f"its source has a name like {like.name} and is not it"
                )
            )
        if (shown := registry.shown_in(_host_of_feed(source))) is not None:
            findings.append(
                ScreeningFinding(
                    IMPERSONATION_RULE,
                    0.8,
                    f"its source's address shows the domain of {shown.name} and is not it",
                )
            )
        before, _, host = host.rpartition("@")
        if before and registry.of_domain(before):
            findings.append(
                ScreeningFinding(
                    IMPERSONATION_RULE, 0.9, "its link shows a publisher's domain and leads elsewhere"
                )
            )
        if host and (like := registry.imitates(host)) is not None:
            findings.append(ScreeningFinding(IMPERSONATION_RULE, 0.9, f"its link imitates {like.name}"))
        is_post = self.kind(source) is SourceKind.SOCIAL  # anybody may put any link in a post
        at_home = registry.of_domain(host) if host and not is_post else None
        claimed = registry.named(publisher) if publisher else None
        if publisher and one_line(publisher) != " ".join(publisher.split()):
            findings.append(
                ScreeningFinding(
                    IMPERSONATION_RULE, 0.8, "its publisher's name contains invisible characters"
                )
            )
        if publisher and claimed is None and (like := registry.looks_like(publisher)) is not None:
            findings.append(
                ScreeningFinding(
                    IMPERSONATION_RULE, 0.9, f"its publisher's name is written like {like.name} and is not it"
                )
            )
        social = (host and registry.is_social(host)) or is_post
        if claimed is not None and claimed is not own and claimed is not at_home:
            if social and not at_home:
                findings.append(
                    ScreeningFinding(IMPERSONATION_RULE, 0.8, f"a post that claims to be from {claimed.name}")
                )
            elif host and not registry.carries(host):
                findings.append(
                    ScreeningFinding(
                        IMPERSONATION_RULE,
                        0.6,
                        f"claims to be from {claimed.name}, but its link leads elsewhere",
                    )
                )
            elif not host:
                findings.append(
                    ScreeningFinding(
                        IMPERSONATION_RULE, 0.2, f"claims to be from {claimed.name} without proof"
                    )
                )
        proven = own if claimed is None and not publisher else claimed
        if proven is not None and (proven is own or proven is at_home) and not findings:
            return Provenance(folded(proven.name), SourceKind(proven.kind), True, (), proven is own)
        if not publisher and at_home is not None and not findings:
            return Provenance(folded(at_home.name), SourceKind(at_home.kind), True, ())
        voice = f"{source}/{folded(publisher)}" if publisher else source
        return Provenance(voice, SourceKind.SOCIAL if social else self.kind(source), False, tuple(findings))

    def kind(self, source: str) -> SourceKind:
        """The kind of a feed, whatever it carries."""
        known = self._kinds_found.get(source)
        if known is None:
            known = self._kinds_found[source] = self._kind(source)
            if len(self._kinds_found) > _MAX_REMEMBERED:
                self._kinds_found.popitem(last=False)
        return known

    def _kind(self, source: str) -> SourceKind:
        configured = self._kinds.get(source)
        if configured in KINDS:
            return SourceKind(configured)
        own = self._registry.named(source) or self._publisher_of_feed(source)
        if own is not None:
            return SourceKind(own.kind)
        is_social = not _SOCIAL_NAMES.isdisjoint(_SPLIT.split(source.lower()))
        return SourceKind.SOCIAL if is_social else SourceKind.UNKNOWN

    def _publisher_of_feed(self, source: str) -> Publisher | None:
        """The publisher that a feed is named after, as in 'reuters.jsonl', or whose address it has, as in
        'www.federalreserve.gov': the operator named it.
        """
        host = _host_of_feed(source)
        if (own := self._registry.of_domain(host)) is not None:
            return own
        first = _SPLIT.split(source.lower().rpartition("/")[2])[0]
        if len(first) <= 2 or "://" in source or self._registry.shown_in(host) is not None:
            return None
        return self._registry.named(first)

    def _dateline(self, text: str, known: Provenance, source: str) -> ScreeningFinding | None:
        """A finding for a text with '(Reuters) -' from another source."""
        found = _DATELINE.search(text)
        claimed = self._registry.named(found[1]) if found else None
        if claimed is None or known.voice == folded(claimed.name):
            return None
        if self._registry.named(source) is claimed or self._publisher_of_feed(source) is claimed:
            return None
        if known.kind is SourceKind.SOCIAL:
            return ScreeningFinding(IMPERSONATION_RULE, 0.8, f"a post with the dateline of {claimed.name}")
        return ScreeningFinding(
            IMPERSONATION_RULE, 0.2, f"has the dateline of {claimed.name} and comes from elsewhere"
        )


def _host_of_feed(source: str) -> str:
    """The host that a feed is named by: web feeds have their address or its host as name; empty for another name."""
    return "" if " " in source else host_of(source if "://" in source else f"//{source}")

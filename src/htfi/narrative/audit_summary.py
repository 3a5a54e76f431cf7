"""Sums up the narrative of many decisions, so that a person finds the one to look at. Apps show it."""

from collections import Counter
from collections.abc import Iterable
from heapq import heappush, heappushpop

from htfi.domain.counts import counted
from htfi.domain.decision import Decision
from htfi.domain.news import NewsItemAudit, Screening
from htfi.narrative.audit import ROUTE_WORDS, AuditSection, quoted_name, reader_in_words
from htfi.narrative.merging import find_contradictions
from htfi.narrative.rationale.units import return_words
from htfi.narrative.text import clean

MAX_LISTED = 8
_MAX_DISTINCT_ITEMS = 100_000  # items counted once; beyond that, every mention counts
_MAX_REASON_CHARS = 160


class AuditSummary:
    """Counts, decision by decision; memory is bounded."""

    def __init__(self) -> None:
        self.num = self.num_with_news = self.num_contradicted = self.num_amended = self.num_secure = 0
        self._known: set[str] = set()
        self._screened: Counter[Screening] = Counter()
        self._rules: Counter[str] = Counter()
        self._routes: Counter[str] = Counter()
        self._sources: Counter[str] = Counter()
        self._rungs: Counter[str] = Counter()
        self._suspicions: Counter[str] = Counter()
        self._num_repeats = self._num_drafted = self._num_accepted = self._num_worded = 0
        self._largest: list[tuple[float, int, str, str]] = []

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> "AuditSummary":
        summary = cls()
        for decision in decisions:
            summary.add(decision)
        return summary

    def add(self, decision: Decision) -> None:
        """Count one decision."""
        self.num += 1
        self.num_amended += bool(decision.amends)
        news_context, view = decision.news_context, decision.view
        if news_context is not None and not decision.amends:
            self.num_with_news += bool(news_context.considered or news_context.set_aside)
            self._rungs[decision.plan.rung.value] += 1
            if news_context.suspicion:
                self.num_secure += 1
                self._suspicions[news_context.suspicion] += 1
            for item in (*news_context.considered, *news_context.set_aside):
                self._count_item(item)
        if view is not None:
            self.num_contradicted += bool(find_contradictions(view.parts, decision.as_of_ns))
            if view.trace is not None:
                self._num_worded += 1
                self._num_drafted += sum(len(one.drafted) for one in view.trace.rounds)
                self._num_accepted += sum(len(one.accepted) for one in view.trace.rounds)
        self._rank_by_effect(decision)

    def _count_item(self, item: NewsItemAudit) -> None:
        name = f"{item.source}\0{item.id}"
        if name in self._known:
            return
        if len(self._known) < _MAX_DISTINCT_ITEMS:
            self._known.add(name)
        self._screened[item.verdict] += 1
        self._routes[ROUTE_WORDS[item.route]] += 1
        self._num_repeats += bool(item.first_report)
        if item.verdict is not Screening.PASS:
            self._sources[clean(item.source, 80)] += 1
            self._rules.update({clean(reason.partition(":")[0], 80): 1 for reason in item.reasons})

    def _rank_by_effect(self, decision: Decision) -> None:
        tilt = decision.forecast.tilt
        if tilt is None:
            return
        moved = tilt.weight[0] * tilt.shift[0]
        words = (
            f"{quoted_name(decision.id)}: the median moved by {return_words(moved)}, read by "
            f"{reader_in_words(tilt.narrator)}"
        )
        entry = (abs(moved), -self.num, decision.id, words)
        if len(self._largest) < MAX_LISTED:
            heappush(self._largest, entry)
        else:
            heappushpop(self._largest, entry)

    def sections(self) -> tuple[AuditSection, ...]:
        """What the decisions have in common, by topic."""
        return (
            AuditSection("Decisions", self._decisions()),
            AuditSection("Suspicion", self._suspected() or ("None.",)),
            AuditSection("What was read", self._read() or ("There was no news.",)),
            AuditSection("What was set aside", self._aside() or ("Nothing.",)),
            AuditSection("What moved most", self._moved() or ("Nothing in any forecast.",)),
            AuditSection("Draft and target", self._drafted()),
        )

    def _decisions(self) -> tuple[str, ...]:
        rungs = ", ".join(f"{rung} {num:,}" for rung, num in self._rungs.most_common())
        lines = [
            f"{counted(self.num, 'decision')}, {self.num_with_news:,} of them with news, "
            f"{counted(self.num_amended, 'amendment')}."
        ]
        if rungs:
            lines.append(f"Where there was news, by rung: {rungs}.")
        lines.append(f"Decisions on readings that contradict each other: {self.num_contradicted:,}.")
        return tuple(lines)

    def _suspected(self) -> tuple[str, ...]:
        if not self.num_secure:
            return ()
        listed = self._suspicions.most_common()
        were = "decision was" if self.num_secure == 1 else "decisions were"
        lines = [f"{self.num_secure:,} {were} made in secure mode."]
        lines += [f"{num:,}: {clean(why, 3 * _MAX_REASON_CHARS)}." for why, num in listed[:MAX_LISTED]]
        if len(listed) > MAX_LISTED:
            lines.append(f"And {counted(len(listed) - MAX_LISTED, 'more suspicion')}.")
        return tuple(lines)

    def _read(self) -> tuple[str, ...]:
        total = sum(self._screened.values())
        if not total:
            return ()
        by = ", ".join(f"{num:,} {how}" for how, num in self._routes.most_common())
        return (f"{counted(total, 'item')} when first considered: {by}.",)

    def _aside(self) -> tuple[str, ...]:
        held, less = self._screened[Screening.QUARANTINE], self._screened[Screening.DISCOUNT]
        if not (held or less or self._num_repeats):
            return ()
        lines = [
            f"{held:,} in quarantine, {less:,} discounted, {self._num_repeats:,} repeated earlier items."
        ]
        if self._rules:
            listed = ", ".join(f"{rule} {num:,}" for rule, num in self._rules.most_common(MAX_LISTED))
            lines.append(f"By reason: {listed}.")
        if self._sources:
            listed = ", ".join(
                f"{quoted_name(name)} {num:,}" for name, num in self._sources.most_common(MAX_LISTED)
            )
            lines.append(f"By source: {listed}.")
        return tuple(lines)

    def _moved(self) -> tuple[str, ...]:
        return tuple(f"{listed}." for size, _, _, listed in sorted(self._largest, reverse=True) if size)

    def _drafted(self) -> tuple[str, ...]:
        if not self._num_worded:
            return ("No local model generated a view.",)
        share = f", {self._num_accepted / self._num_drafted:.0%}" if self._num_drafted else ""
        return (
            f"{counted(self._num_worded, 'view')} generated: {counted(self._num_drafted, 'token')} drafted, "
            f"{self._num_accepted:,} accepted{share}.",
        )

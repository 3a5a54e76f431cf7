"""Places requests: holds live figures, prices every way at every cloud, chooses, and learns from what came of it.

Wiring introduces a `Planner` to the edge, which asks `place` once a request. Nothing here reads a clock: callers pass
seconds of theirs.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, cast

from htfi.scheduling.placement.config import PlacementConfig
from htfi.scheduling.placement.correction import Correction
from htfi.scheduling.placement.figures import (
    Ask,
    CloudFigures,
    Decision,
    EdgeFigures,
    LinkFigures,
    Outcome,
    Plane,
    Priced,
    Way,
)
from htfi.scheduling.placement.live import CloudReport, Kind, LiveCloud, LiveEdge, LiveLink
from htfi.scheduling.placement.pricing import Cost, Task, at_cloud, edge_alone, late_extra_ms, strain

_DEFAULT = PlacementConfig()
_RANK = {way: rank for rank, way in enumerate(Way)}
_NUM_CACHED = 512
_NUM_RECENT = 256
_LATE_COMPUTE = 0.5  # of computing, what it may take more at a high quantile
_STILL = 0.02  # ms: what is as small has not moved

# Until a cloud has told its own: one core, int8, the shipped pair of models.
CLOUD_PRIOR = CloudFigures(Plane(0.30, 0.07, 0.0, 0.056), prompt_ms=0.06, draft_ms=0.05, watts=5.0)
EDGE_PRIOR = EdgeFigures(draft_ms=0.03, prompt_ms=0.007, watts=5.0)


class _Terms(NamedTuple):
    """What costs at a cloud depend on."""

    link: LinkFigures
    cloud: CloudFigures
    edge: EdgeFigures


class Planner:
    """The state of placement. For one thread at a time."""

    def __init__(
        self,
        config: PlacementConfig = _DEFAULT,
        cloud_prior: CloudFigures = CLOUD_PRIOR,
        edge_prior: EdgeFigures = EDGE_PRIOR,
        can_draft: bool = True,
    ) -> None:
        self._config = config
        self._cloud_prior = cloud_prior
        self._can_draft = can_draft
        self._links: dict[str, LiveLink] = {}
        self._clouds: dict[str, LiveCloud] = {}
        self._edge = LiveEdge(edge_prior, config)
        self._kinds: dict[str, Kind] = {}
        self._corrections: dict[tuple[str, str], Correction] = {}
        self._held: dict[str, _Terms] = {}
        self._costs: OrderedDict[tuple[object, ...], list[Cost]] = OrderedDict()
        self._recent: OrderedDict[tuple[object, ...], Cost] = OrderedDict()
        self._spent_ms = 0.0
        self._explored_ms = 0.0

    def observe_link(
        self,
        cloud: str,
        at_s: float,
        rtt_ms: float | None = None,
        bytes_per_s: float | None = None,
        loss: float | None = None,
        is_suspect: bool | None = None,
    ) -> None:
        """A sample of the link to a cloud."""
        link = self._links.get(cloud)
        if link is None:
            link = self._links[cloud] = LiveLink(self._config)
        shifts = link.num_shifts
        link.sample(at_s, rtt_ms, bytes_per_s, loss, is_suspect)
        if link.num_shifts != shifts:
            for (node, _), correction in self._corrections.items():
                if node == cloud:
                    correction.link_changed()

    def observe_cloud(self, cloud: str, at_s: float, report: CloudReport) -> None:
        """What a cloud says of itself."""
        live = self._clouds.get(cloud)
        if live is None:
            live = self._clouds[cloud] = LiveCloud(self._cloud_prior, self._config)
        live.report(at_s, report)

    def observe_edge(
        self,
        at_s: float,
        draft_ms: float | None = None,
        throttle: float | None = None,
        temperature_c: float | None = None,
        load: float | None = None,
        watts: float | None = None,
    ) -> None:
        """A sample of this machine: `draft_ms` a token drafted."""
        self._edge.sample(at_s, draft_ms, throttle, temperature_c, load, watts)

    def forget(self, cloud: str) -> None:
        """A cloud has left for good."""
        self._links.pop(cloud, None)
        self._clouds.pop(cloud, None)
        self._held.pop(cloud, None)
        for key in [key for key in self._corrections if key[0] == cloud]:
            del self._corrections[key]

    def place(self, ask: Ask, clouds: Sequence[str]) -> Decision:
        """Where a request runs, among clouds that are connected. Every way is priced and returned."""
        edge = self._edge.figures()
        kind = self._kinds.get(ask.kind)
        num_tokens = self._num_expected(ask, kind)
        curve = ask.curve or (kind or Kind(self._config.prior_rate)).curve(min(max(num_tokens, 1), 48))
        alone = self._alone(ask, num_tokens, edge)
        priced: list[Priced] = []
        for cloud in dict.fromkeys(clouds):
            priced += self._at(cloud, ask, num_tokens, curve, edge)
        priced.sort(key=_order)
        usable = [one for one in priced if one.can_be]
        if not usable:
            why = "no cloud is connected" if not priced else _reasons(priced)
            return Decision(alone, (alone, *priced), None, f"edge alone: {why}")
        choice, words = self._choose(ask, usable, alone)
        second = next((one for one in usable if one.cloud != choice.cloud), None)
        self._spent_ms += choice.price_ms
        everything = tuple(sorted((*priced, alone), key=_order))
        return Decision(choice, everything, second, words)

    def learn(self, outcome: Outcome) -> None:
        """What came of a choice. One that is not remembered, or ended without an answer, teaches nothing of times."""
        kind = self._kinds.get(outcome.kind)
        if kind is None:
            kind = self._kinds[outcome.kind] = Kind(self._config.prior_rate)
        kind.learn(outcome.num_tokens, outcome.num_drafted, outcome.num_stood, outcome.window)
        cost = self._recent.pop(_mark(outcome), None)
        live = self._links.get(outcome.cloud)
        link = live.figures() if live else None
        if cost is None or link is None or outcome.num_tokens < 1:
            return
        cloud = self._clouds.get(outcome.cloud)
        figures = cloud.figures() if cloud else self._cloud_prior
        # both parts grow with the tokens that there were, but for the prompt and the first trip
        grows = (max(outcome.num_tokens, 1) - 1) / max(cost.num_tokens - 1, 1)
        compute = cost.prompt_ms + (cost.compute_ms - cost.prompt_ms) * grows
        travel = figures.queue_ms + cost.upload_ms + (1.0 + (cost.num_trips - 1.0) * grows) * link.rtt_ms
        for correction in self._both(outcome.cloud, outcome.kind):
            correction.learn(outcome.way, travel, compute, outcome.total_ms)

    def _both(self, cloud: str, kind: str) -> tuple[Correction, Correction]:
        general = self._corrections.get((cloud, ""))
        if general is None:
            general = self._corrections[cloud, ""] = Correction()
        own = self._corrections.get((cloud, f"={kind}"))
        if own is None:
            own = self._corrections[cloud, f"={kind}"] = Correction(general)
        return general, own

    def _num_expected(self, ask: Ask, kind: Kind | None) -> int:
        usual = ask.num_expected or (kind.num_tokens if kind else None) or ask.num_tokens
        return max(min(usual, ask.num_tokens), 1)

    def _alone(self, ask: Ask, num_tokens: int, edge: EdgeFigures) -> Priced:
        if not self._can_draft:
            return Priced(
                "", Way.EDGE_ONLY, 0, 0, math.inf, math.inf, math.inf, 0.0, 0.0, 0.0, False, "no draft here"
            )
        cost = edge_alone(Task(num_tokens, ask.num_prompt, ask.num_prompt, ()), edge, self._config)
        price = cost.compute_ms + cost.strain_ms + cost.joules * self._config.ms_per_joule
        words = "provisional: no target sees it"
        return Priced(
            "", Way.EDGE_ONLY, 0, 0, cost.compute_ms, cost.compute_ms, price, cost.joules, 0.0, cost.compute_ms,
            False, words,
        )  # fmt: skip

    def _at(
        self, cloud: str, ask: Ask, num_tokens: int, curve: tuple[float, ...], edge: EdgeFigures
    ) -> list[Priced]:
        live = self._clouds.get(cloud)
        figures = live.figures() if live else self._cloud_prior
        link = self._links.get(cloud)
        now = link.figures() if link else None
        forbidden = _forbidden(cloud, ask, now, figures)
        if now is None or (forbidden and not ask.residency <= figures.residency):
            return [_cannot(cloud, way, forbidden) for way in Way if way is not Way.EDGE_ONLY]
        terms = _terms(now, figures, edge, self._config)
        terms = self._held[cloud] = _held(self._held.get(cloud), terms, self._config.moved)
        num_prompt = max(ask.num_prompt - ask.num_known.get(cloud, 0), 0)
        task = Task(num_tokens, num_prompt, ask.num_prompt, curve)
        costs = self._costed(task, terms)
        correction = self._corrections.get((cloud, f"={ask.kind}")) or self._corrections.get((cloud, ""))
        if correction is None:
            correction = self._both(cloud, ask.kind)[1]
        factors = correction.factors()
        priced: list[Priced] = []
        for cost in costs:
            compute = cost.compute_ms * factors.compute[cost.way]
            expected = (
                cost.num_trips * now.rtt_ms + figures.queue_ms + cost.upload_ms
            ) * factors.network + compute
            price = expected + cost.strain_ms + cost.joules * self._config.ms_per_joule
            late = expected + late_extra_ms(cost, now, figures) + compute * _LATE_COMPUTE
            one = Priced(
                cloud, cost.way, cost.window, cost.in_flight, expected, late, price, cost.joules, cost.num_trips,
                compute, not forbidden, forbidden or _told(cost, now),
            )  # fmt: skip
            self._remember(one, cost)
            priced.append(one)
        return priced

    def _costed(self, task: Task, terms: _Terms) -> list[Cost]:
        key = (task, terms)
        costs = self._costs.get(key)
        if costs is None:
            edge = terms.edge if self._can_draft else None
            costs = self._costs[key] = at_cloud(task, terms.link, terms.cloud, edge, self._config)
            if len(self._costs) > _NUM_CACHED:
                self._costs.popitem(last=False)
        else:
            self._costs.move_to_end(key)
        return costs

    def _remember(self, one: Priced, cost: Cost) -> None:
        self._recent[_mark(one)] = cost
        if len(self._recent) > _NUM_RECENT:
            self._recent.popitem(last=False)

    def _choose(self, ask: Ask, usable: list[Priced], alone: Priced) -> tuple[Priced, str]:
        safe = [one for one in usable if one.late_ms <= ask.deadline_ms]
        likely = safe or [one for one in usable if one.expected_ms <= ask.deadline_ms]
        if not likely:
            soonest = min(usable, key=lambda one: (one.expected_ms, _RANK[one.way], one.cloud))
            needs = f"needs {soonest.expected_ms:.0f} ms of {ask.deadline_ms:.0f}"
            words = f"{soonest.way.value} at {soonest.cloud} {needs}"
            if not self._can_draft:
                return soonest, f"late: {words}"
            return alone, f"edge alone: {words}"
        best = likely[0]
        tried = self._worth_trying(ask, likely, best) if safe else None
        if tried is not None:
            self._explored_ms += max(tried.price_ms - best.price_ms, 0.0)
            return tried, f"tried, as it may be cheaper than {best.way.value} ({tried.words})"
        return best, f"{'' if safe else 'may be late: '}cheapest of {len(usable)}: {best.words}"

    def _worth_trying(self, ask: Ask, likely: list[Priced], best: Priced) -> Priced | None:
        """A way that was hardly tried and may be cheaper than the best, if the budget of trying allows."""
        config = self._config
        for one in likely[1:]:
            own = self._corrections.get((one.cloud, f"={ask.kind}"))
            if own is None or own.tried[one.way] >= config.tries:
                continue
            doubt = (
                own.factors().doubt[one.way]
                if one.cloud != best.cloud
                else own.doubt_between(one.way, best.way)
            )
            low = one.price_ms - one.compute_ms * (1.0 - math.exp(-doubt))
            extra = one.price_ms - best.price_ms
            allowed = config.explore_share * self._spent_ms + config.explore_first * best.price_ms
            if low < best.price_ms and self._explored_ms + extra <= allowed:
                return one
        return None


def _mark(one: Priced | Outcome) -> tuple[object, ...]:
    return one.cloud, one.way, one.window, one.in_flight, one.expected_ms


def _order(one: Priced) -> tuple[bool, float, int, str]:
    return not one.can_be, one.price_ms, _RANK[one.way], one.cloud


def _forbidden(cloud: str, ask: Ask, link: LinkFigures | None, figures: CloudFigures) -> str:
    if not ask.residency <= figures.residency:
        missing = ", ".join(sorted(ask.residency - figures.residency))
        return f"data may not leave for {cloud}: {missing}"
    if link is None:
        return f"the link to {cloud} was not measured yet"
    if figures.is_ill:
        return f"{cloud} is ill"
    if link.is_suspect:
        return f"the link to {cloud} is suspect"
    return ""


def _cannot(cloud: str, way: Way, words: str) -> Priced:
    return Priced(cloud, way, 0, 0, math.inf, math.inf, math.inf, 0.0, 0.0, 0.0, False, words)


def _reasons(priced: list[Priced]) -> str:
    return "; ".join(dict.fromkeys(one.words for one in priced))


def _terms(link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures, config: PlacementConfig) -> _Terms:
    """Without what costs do not depend on, so that this may move as it likes."""
    return _Terms(
        LinkFigures(link.rtt_ms, link.rtt_ms, 0.0, link.bytes_per_s),
        cloud._replace(queue_late_ms=0.0, residency=frozenset[str](), is_ill=False),
        edge._replace(throttle=round(strain(edge, config), 1), temperature_c=None, load=0.0),
    )


def _told(cost: Cost, link: LinkFigures) -> str:
    windows = ""
    if cost.way is Way.FLIGHT:
        windows = f", {cost.in_flight} windows of {cost.window}"
    elif cost.window:
        windows = f", windows of {cost.window}"
    return f"{cost.way.value}{windows}; RTT {link.rtt_ms:.1f} ms × {cost.num_trips:.1f}"


def _held(held: _Terms | None, now: _Terms, moved: float) -> _Terms:
    """The terms that prices were reckoned with, until one has moved from them: so that prices need no reckoning."""
    return held if held is not None and _is_near(held, now, moved) else now


def _is_near(one: tuple[object, ...], other: tuple[object, ...], moved: float) -> bool:
    for a, b in zip(one, other, strict=True):
        if isinstance(a, tuple) and isinstance(b, tuple):
            if not _is_near(cast(tuple[object, ...], a), cast(tuple[object, ...], b), moved):
                return False
        elif isinstance(a, float | int) and isinstance(b, float | int):
            if abs(a - b) > moved * max(abs(a), abs(b)) + _STILL:
                return False
        elif a != b:
            return False
    return True

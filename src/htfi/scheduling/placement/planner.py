"""Places requests: holds live figures, prices every way at every cloud, chooses, and learns from what came of it.

Wiring introduces a `Planner` to the edge, which asks `place` once a request. Nothing here reads a clock: callers pass
seconds of theirs.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from htfi.scheduling.placement.choosing import cannot, choose, told, tried, why_not
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
from htfi.scheduling.placement.holding import Terms, held, held_curve, terms
from htfi.scheduling.placement.live import CloudReport, Kind, LiveCloud, LiveEdge, LiveLink
from htfi.scheduling.placement.pricing import (
    Cost,
    Task,
    at_cloud,
    at_window,
    edge_alone,
    late_extra_ms,
    scene,
    upload_ms,
)
from htfi.scheduling.placement.writing_times import EXACT_PLACES

_DEFAULT = PlacementConfig()
_NUM_CACHED = 512
_TELLING_PLACE, _TELLING = (
    4,
    0.1,
)  # of a curve: where its chance has moved by so much, guesses are not what they were
_NUM_RECENT = 4_096

# Until a cloud has told its own: one core, int8, the shipped pair of models.
CLOUD_PRIOR = CloudFigures(Plane(0.30, 0.07, 0.0, 0.056), prompt_ms=0.06, draft_ms=0.05, watts=5.0)
EDGE_PRIOR = EdgeFigures(draft_ms=0.03, prompt_ms=0.007, watts=5.0)


class Reckoned(NamedTuple):
    """What was placed, to be reckoned again with what is known when its outcome is learnt."""

    task: Task
    upload_ms: float
    prompt_ms: float
    is_curve_given: bool


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
        self._held: dict[str, Terms] = {}
        self._curves: dict[str, tuple[float, ...]] = {}
        self._stood: dict[str, float] = {}
        self._costs: OrderedDict[tuple[object, ...], list[Cost]] = OrderedDict()
        self._recent: OrderedDict[tuple[object, ...], Reckoned] = OrderedDict()
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
        kind = self._kind(ask.kind)
        num_tokens = max(min(ask.num_expected or kind.num_tokens or ask.num_tokens, ask.num_tokens), 1)
        curve = self._held_curve(ask, kind)
        priced = [
            one for cloud in dict.fromkeys(clouds) for one in self._at(cloud, ask, num_tokens, curve, edge)
        ]
        alone = self._alone(ask, num_tokens, edge)
        decision = choose(ask.deadline_ms, priced, alone, self._can_draft)
        if decision.choice.way is Way.EDGE_ONLY:
            return decision
        decision = self._tried(ask, decision)
        self._spent_ms += decision.choice.price_ms
        return decision

    def learn(self, outcome: Outcome) -> None:
        """What came of a way that was priced. One that is not remembered teaches nothing of times.

        One that was given up teaches something only where it had taken longer than was expected of it.
        """
        is_whole = outcome.is_whole and outcome.num_tokens > 0
        num_tokens = outcome.num_tokens if is_whole else 0
        kind = self._kind(outcome.kind)
        kind.learn(num_tokens, outcome.num_drafted, outcome.num_stood, outcome.window)
        reckoned = self._recent.get(_mark(outcome))
        figures, link = self._figures(outcome.cloud)
        if reckoned is None or link is None or (not is_whole and outcome.total_ms <= outcome.expected_ms):
            return
        # with the tokens that there were, and the rate of guesses as it is known by now: nothing else is blamed for it
        before = reckoned.task
        task = Task(
            num_tokens if is_whole else before.num_tokens,
            before.num_prompt,
            before.num_prompt_edge,
            before.curve if reckoned.is_curve_given else kind.curve(EXACT_PLACES),
        )
        now = self._held.get(outcome.cloud)
        if now is None:
            return
        seen = scene(task, now.link, now.cloud, now.edge, self._config)
        cost = at_window(seen, outcome.way, max(outcome.window, 1), max(outcome.in_flight, 1))
        compute_ms = reckoned.prompt_ms + cost.ms
        travel_ms = figures.queue_ms + reckoned.upload_ms + cost.num_trips * link.rtt_ms
        for correction in self._both(outcome.cloud, outcome.kind):
            correction.learn(outcome.way, travel_ms, compute_ms, outcome.total_ms)

    def _tried(self, ask: Ask, decision: Decision) -> Decision:
        """The decision, or the way instead that may be cheapest as far as is known: what that may cost is bounded."""
        best, config = decision.choice, self._config
        allowed_ms = config.explore_share * self._spent_ms + config.explore_first * best.price_ms
        instead, lowest = best, best.price_ms
        for one in decision.priced:
            if not one.can_be or one is best or one.way is Way.EDGE_ONLY or one.late_ms > ask.deadline_ms:
                continue
            own = self._both(one.cloud, ask.kind)[1]
            doubt = own.factors().doubt[one.way]
            if one.cloud == best.cloud:  # what both have in common makes neither cheaper
                doubt = min(doubt, own.doubt_between(one.way, best.way))
            low = one.price_ms - one.compute_ms * (1.0 - math.exp(-doubt))
            if low < lowest and self._explored_ms + one.price_ms - best.price_ms <= allowed_ms:
                instead, lowest = one, low
        if instead is best:
            return decision
        self._explored_ms += max(instead.price_ms - best.price_ms, 0.0)
        return tried(decision, instead)

    def _held_curve(self, ask: Ask, kind: Kind) -> tuple[float, ...]:
        curve = held_curve(self._curves.get(ask.kind), ask.curve or kind.curve(EXACT_PLACES))
        self._curves[ask.kind] = curve
        stands = curve[min(_TELLING_PLACE, len(curve)) - 1]
        if abs(stands - self._stood.setdefault(ask.kind, stands)) > _TELLING:
            self._stood[ask.kind] = stands
            for (_, whose), correction in self._corrections.items():
                if whose == f"={ask.kind}":
                    correction.curve_changed()
        return curve

    def _kind(self, kind: str) -> Kind:
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = Kind(self._config.prior_rate)
        return known

    def _both(self, cloud: str, kind: str) -> tuple[Correction, Correction]:
        general = self._corrections.get((cloud, ""))
        if general is None:
            general = self._corrections[cloud, ""] = Correction()
        own = self._corrections.get((cloud, f"={kind}"))
        if own is None:
            own = self._corrections[cloud, f"={kind}"] = Correction(general)
        return general, own

    def _alone(self, ask: Ask, num_tokens: int, edge: EdgeFigures) -> Priced:
        if not self._can_draft:
            return cannot("", Way.EDGE_ONLY, "no draft is here")
        cost = edge_alone(Task(num_tokens, ask.num_prompt, ask.num_prompt, ()), edge, self._config)
        price = cost.ms + cost.strain_ms + cost.joules * self._config.ms_per_joule
        words = "provisional: no target sees it"
        return Priced("", cost.way, 0, 0, cost.ms, cost.ms, price, cost.joules, 0.0, cost.ms, True, words)

    def _at(
        self, cloud: str, ask: Ask, num_tokens: int, curve: tuple[float, ...], edge: EdgeFigures
    ) -> list[Priced]:
        config = self._config
        figures, link = self._figures(cloud)
        forbidden = why_not(cloud, ask, link, figures)
        if link is None:
            return [cannot(cloud, way, forbidden) for way in Way if way is not Way.EDGE_ONLY]
        now = self._held[cloud] = held(
            self._held.get(cloud), terms(link, figures, edge, config), config.moved
        )
        num_prompt = max(ask.num_prompt - ask.num_known.get(cloud, 0), 0)
        task = Task(num_tokens, _rounded(num_prompt), _rounded(ask.num_prompt), curve)
        prompt_ms, upload = num_prompt * figures.prompt_ms, upload_ms(num_prompt, link)
        correction = self._both(cloud, ask.kind)[1]
        factors, late_ratio = correction.factors(), correction.late_ratio()
        priced: list[Priced] = []
        for cost in self._costed(task, now):
            compute_ms = (prompt_ms + cost.ms) * factors.compute[cost.way]
            travel_ms = (cost.num_trips * link.rtt_ms + figures.queue_ms + upload) * factors.network
            expected_ms = travel_ms + compute_ms
            late_ms = max(expected_ms * late_ratio, expected_ms + late_extra_ms(cost, link, figures))
            price = expected_ms + cost.strain_ms + cost.joules * config.ms_per_joule
            one = Priced(
                cloud, cost.way, cost.window, cost.in_flight, expected_ms, late_ms, price, cost.joules,
                cost.num_trips, compute_ms, not forbidden, forbidden or told(cost, link),
            )  # fmt: skip
            priced.append(one)
            self._remember(one, Reckoned(task, upload, prompt_ms, bool(ask.curve)))
        return priced

    def _figures(self, cloud: str) -> tuple[CloudFigures, LinkFigures | None]:
        live, link = self._clouds.get(cloud), self._links.get(cloud)
        return live.figures() if live else self._cloud_prior, link.figures() if link else None

    def _costed(self, task: Task, terms: Terms) -> list[Cost]:
        key = (task, terms)
        costs = self._costs.get(key)
        if costs is None:
            edge = terms.edge if self._can_draft else None
            costs = self._costs[key] = at_cloud(scene(task, terms.link, terms.cloud, edge, self._config))
            if len(self._costs) > _NUM_CACHED:
                self._costs.popitem(last=False)
        else:
            self._costs.move_to_end(key)
        return costs

    def _remember(self, one: Priced, reckoned: Reckoned) -> None:
        self._recent[_mark(one)] = reckoned
        if len(self._recent) > _NUM_RECENT:
            self._recent.popitem(last=False)


def _mark(one: Priced | Outcome) -> tuple[object, ...]:
    return one.cloud, one.way, one.window, one.in_flight, one.expected_ms


def _rounded(num_tokens: int) -> int:
    """Prompts of nearly one length count as one where only the edge's head start depends on it."""
    step = max(1 << max(num_tokens.bit_length() - 2, 0), 1)
    return num_tokens // step * step

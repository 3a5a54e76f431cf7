"""Places requests: holds live figures, prices every placement, chooses, and learns from the outcomes.

The edge calls `place` for each request. Nothing here reads a clock: callers pass their seconds.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from htfi.scheduling.config import EXPLORE_FIRST, PRIOR_RATE, REPRICE_SHARE, PlacementConfig
from htfi.scheduling.placement.choosing import (
    choose,
    describe_option,
    excluded_option,
    exclusion_reason,
    explore_instead,
)
from htfi.scheduling.placement.correction import CostCorrection
from htfi.scheduling.placement.decoding_times import EXACT_PLACES
from htfi.scheduling.placement.figures import (
    CloudFigures,
    EdgeFigures,
    LinkFigures,
    PassCostModel,
    Placement,
    PlacementDecision,
    PlacementOutcome,
    PlacementRequest,
    PricedOption,
)
from htfi.scheduling.placement.live import (
    CloudEstimator,
    CloudReport,
    EdgeEstimator,
    LinkEstimator,
    RequestProfile,
)
from htfi.scheduling.placement.pricing import (
    CostTerms,
    DecodingTask,
    OptionCost,
    hold_curve,
    hold_terms,
    make_cost_inputs,
    price_at_cloud,
    price_edge_only,
    price_window,
    round_terms,
    tail_delay_ms,
    upload_ms,
)

_DEFAULT = PlacementConfig()
_NUM_CACHED = 512
_CURVE_PLACE, _CURVE_TOLERANCE = (
    4,
    0.1,
)  # a change of acceptance at this position beyond the tolerance means that the drafts have changed
_NUM_RECENT = 4_096

# Until a cloud has reported its own: one core, int8, the shipped pair of models.
CLOUD_PRIOR = CloudFigures(PassCostModel(0.30, 0.07, 0.0, 0.056), prompt_ms=0.06, draft_ms=0.05, watts=5.0)
EDGE_PRIOR = EdgeFigures(draft_ms=0.03, prompt_ms=0.007, watts=5.0)


class PricedContext(NamedTuple):
    """What was placed, to be priced again with what is known when its outcome is learnt."""

    task: DecodingTask
    upload_ms: float
    prompt_ms: float
    is_curve_given: bool


class PlacementPlanner:
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
        self._links: dict[str, LinkEstimator] = {}
        self._clouds: dict[str, CloudEstimator] = {}
        self._edge = EdgeEstimator(edge_prior)
        self._profiles: dict[str, RequestProfile] = {}
        self._corrections: dict[tuple[str, str], CostCorrection] = {}
        self._held_terms: dict[str, CostTerms] = {}
        self._curves: dict[str, tuple[float, ...]] = {}
        self._held_acceptance: dict[str, float] = {}
        self._costs: OrderedDict[tuple[object, ...], list[OptionCost]] = OrderedDict()
        self._recent: OrderedDict[tuple[object, ...], PricedContext] = OrderedDict()
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
            link = self._links[cloud] = LinkEstimator()
        shifts = link.num_shifts
        link.sample(at_s, rtt_ms, bytes_per_s, loss, is_suspect)
        if link.num_shifts != shifts:
            for (node, _), correction in self._corrections.items():
                if node == cloud:
                    correction.link_changed()

    def observe_cloud(self, cloud: str, at_s: float, report: CloudReport) -> None:
        """What a cloud reports of itself."""
        live = self._clouds.get(cloud)
        if live is None:
            live = self._clouds[cloud] = CloudEstimator(self._cloud_prior)
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
        """A cloud has left and will not return."""
        self._links.pop(cloud, None)
        self._clouds.pop(cloud, None)
        self._held_terms.pop(cloud, None)
        for key in [key for key in self._corrections if key[0] == cloud]:
            del self._corrections[key]

    def place(self, ask: PlacementRequest, clouds: Sequence[str]) -> PlacementDecision:
        """Where a request runs, among connected clouds. Every placement is priced and returned."""
        edge = self._edge.figures()
        kind = self._profile(ask.kind)
        num_tokens = max(min(ask.num_expected or kind.num_tokens or ask.num_tokens, ask.num_tokens), 1)
        curve = self._held_curve(ask, kind)
        priced = [
            option
            for cloud in dict.fromkeys(clouds)
            for option in self._price_cloud(cloud, ask, num_tokens, curve, edge)
        ]
        alone = self._price_edge_only(ask, num_tokens, edge)
        decision = choose(ask.deadline_ms, priced, alone, self._can_draft)
        if decision.choice.placement is Placement.EDGE_ONLY:
            return decision
        decision = self._explore(ask, decision)
        self._spent_ms += decision.choice.price_ms
        return decision

    def learn(self, outcome: PlacementOutcome) -> None:
        """The outcome of a placement. One that is no longer remembered teaches nothing of times.

        One that was given up teaches something only where it had taken longer than was expected of it.
        """
        is_whole = outcome.is_whole and outcome.num_tokens > 0
        num_tokens = outcome.num_tokens if is_whole else 0
        kind = self._profile(outcome.kind)
        kind.learn(num_tokens, outcome.num_drafted, outcome.num_accepted, outcome.window)
        context = self._recent.get(_option_key(outcome))
        figures, link = self._figures(outcome.cloud)
        if context is None or link is None or (not is_whole and outcome.total_ms <= outcome.expected_ms):
            return
        # with the actual number of tokens and the present acceptance rate, so that the correction does not absorb these
        # errors
        before = context.task
        task = DecodingTask(
            num_tokens if is_whole else before.num_tokens,
            before.num_prompt,
            before.num_prompt_edge,
            before.curve if context.is_curve_given else kind.acceptance_curve(EXACT_PLACES),
        )
        now = self._held_terms.get(outcome.cloud)
        if now is None:
            return
        seen = make_cost_inputs(task, now.link, now.cloud, now.edge, self._config)
        cost = price_window(seen, outcome.placement, max(outcome.window, 1), max(outcome.in_flight, 1))
        compute_ms = context.prompt_ms + cost.ms
        travel_ms = figures.queue_ms + context.upload_ms + cost.num_trips * link.rtt_ms
        for correction in self._corrections_for(outcome.cloud, outcome.kind):
            correction.learn(outcome.placement, travel_ms, compute_ms, outcome.total_ms)

    def _explore(self, ask: PlacementRequest, decision: PlacementDecision) -> PlacementDecision:
        """The decision, or an exploration of a placement that may be cheaper. The cost of exploring is bounded."""
        best, config = decision.choice, self._config
        allowed_ms = config.explore_share * self._spent_ms + EXPLORE_FIRST * best.price_ms
        candidate, lowest_ms = best, best.price_ms
        for option in decision.options:
            if (
                not option.is_allowed
                or option is best
                or option.placement is Placement.EDGE_ONLY
                or option.late_ms > ask.deadline_ms
            ):
                continue
            own = self._corrections_for(option.cloud, ask.kind)[1]
            log_uncertainty = own.factors().uncertainty[option.placement]
            if option.cloud == best.cloud:  # what both have in common makes neither cheaper
                log_uncertainty = min(
                    log_uncertainty, own.uncertainty_between(option.placement, best.placement)
                )
            optimistic_ms = option.price_ms - option.compute_ms * (1.0 - math.exp(-log_uncertainty))
            if (
                optimistic_ms < lowest_ms
                and self._explored_ms + option.price_ms - best.price_ms <= allowed_ms
            ):
                candidate, lowest_ms = option, optimistic_ms
        if candidate is best:
            return decision
        self._explored_ms += max(candidate.price_ms - best.price_ms, 0.0)
        return explore_instead(decision, candidate)

    def _held_curve(self, ask: PlacementRequest, kind: RequestProfile) -> tuple[float, ...]:
        curve = hold_curve(self._curves.get(ask.kind), ask.curve or kind.acceptance_curve(EXACT_PLACES))
        self._curves[ask.kind] = curve
        acceptance = curve[min(_CURVE_PLACE, len(curve)) - 1]
        if abs(acceptance - self._held_acceptance.setdefault(ask.kind, acceptance)) > _CURVE_TOLERANCE:
            self._held_acceptance[ask.kind] = acceptance
            for (_, profile_kind), correction in self._corrections.items():
                if profile_kind == f"={ask.kind}":
                    correction.acceptance_changed()
        return curve

    def _profile(self, kind: str) -> RequestProfile:
        known = self._profiles.get(kind)
        if known is None:
            known = self._profiles[kind] = RequestProfile(PRIOR_RATE)
        return known

    def _corrections_for(self, cloud: str, kind: str) -> tuple[CostCorrection, CostCorrection]:
        general = self._corrections.get((cloud, ""))
        if general is None:
            general = self._corrections[cloud, ""] = CostCorrection()
        own = self._corrections.get((cloud, f"={kind}"))
        if own is None:
            own = self._corrections[cloud, f"={kind}"] = CostCorrection(general)
        return general, own

    def _price_edge_only(self, ask: PlacementRequest, num_tokens: int, edge: EdgeFigures) -> PricedOption:
        if not self._can_draft:
            return excluded_option("", Placement.EDGE_ONLY, "no draft is here")
        cost = price_edge_only(
            DecodingTask(num_tokens, ask.num_prompt, ask.num_prompt, ()), edge, self._config
        )
        price = cost.ms + cost.strain_ms + cost.joules * self._config.ms_per_joule
        words = "provisional: no target sees it"
        return PricedOption("", cost.placement, 0, 0, cost.ms, cost.ms, price, cost.ms, True, words)

    def _price_cloud(
        self, cloud: str, ask: PlacementRequest, num_tokens: int, curve: tuple[float, ...], edge: EdgeFigures
    ) -> list[PricedOption]:
        config = self._config
        figures, link = self._figures(cloud)
        forbidden = exclusion_reason(cloud, ask, link, figures)
        if link is None:
            return [
                excluded_option(cloud, placement, forbidden)
                for placement in Placement
                if placement is not Placement.EDGE_ONLY
            ]
        now = self._held_terms[cloud] = hold_terms(
            self._held_terms.get(cloud), round_terms(link, figures, edge, config), REPRICE_SHARE
        )
        num_prompt = max(ask.num_prompt - ask.num_known.get(cloud, 0), 0)
        task = DecodingTask(num_tokens, _round_prompt(num_prompt), _round_prompt(ask.num_prompt), curve)
        prompt_ms, upload = num_prompt * figures.prompt_ms, upload_ms(num_prompt, link)
        correction = self._corrections_for(cloud, ask.kind)[1]
        factors, late_ratio = correction.factors(), correction.p95_ratio()
        priced: list[PricedOption] = []
        for cost in self._cached_costs(task, now):
            compute_ms = (prompt_ms + cost.ms) * factors.compute[cost.placement]
            travel_ms = (cost.num_trips * link.rtt_ms + figures.queue_ms + upload) * factors.network
            expected_ms = travel_ms + compute_ms
            late_ms = max(expected_ms * late_ratio, expected_ms + tail_delay_ms(cost, link, figures))
            price = expected_ms + cost.strain_ms + cost.joules * config.ms_per_joule
            option = PricedOption(
                cloud, cost.placement, cost.window, cost.in_flight, expected_ms, late_ms, price,
                compute_ms, not forbidden, forbidden or describe_option(cost, link),
            )  # fmt: skip
            priced.append(option)
            self._remember(option, PricedContext(task, upload, prompt_ms, bool(ask.curve)))
        return priced

    def _figures(self, cloud: str) -> tuple[CloudFigures, LinkFigures | None]:
        live, link = self._clouds.get(cloud), self._links.get(cloud)
        return live.figures() if live else self._cloud_prior, link.figures() if link else None

    def _cached_costs(self, task: DecodingTask, terms: CostTerms) -> list[OptionCost]:
        key = (task, terms)
        costs = self._costs.get(key)
        if costs is None:
            edge = terms.edge if self._can_draft else None
            costs = self._costs[key] = price_at_cloud(
                make_cost_inputs(task, terms.link, terms.cloud, edge, self._config)
            )
            if len(self._costs) > _NUM_CACHED:
                self._costs.popitem(last=False)
        else:
            self._costs.move_to_end(key)
        return costs

    def _remember(self, option: PricedOption, context: PricedContext) -> None:
        self._recent[_option_key(option)] = context
        if len(self._recent) > _NUM_RECENT:
            self._recent.popitem(last=False)


def _option_key(option: PricedOption | PlacementOutcome) -> tuple[object, ...]:
    return option.cloud, option.placement, option.window, option.in_flight, option.expected_ms


def _round_prompt(num_tokens: int) -> int:
    """Rounded, since only the edge's head start depends on it: similar lengths share a price."""
    step = max(1 << max(num_tokens.bit_length() - 2, 0), 1)
    return num_tokens // step * step

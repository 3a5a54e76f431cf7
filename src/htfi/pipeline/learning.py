"""What a run learns from its decisions once they are released, while nothing waits: the loop calls it."""

from collections.abc import Callable

from htfi.domain.decision import Decision
from htfi.pipeline.components import Components


class OutcomeLearning:
    """Weights and scores of forecasts, the records of news sources, usual feature values; then the watcher.

    `watcher` is called with each decision, once it is released.
    """

    def __init__(self, components: Components, watcher: Callable[[Decision], None]) -> None:
        self.watcher = watcher
        self._components = components
        self._has_new_bars = False  # a decision point has passed that nothing has learnt from yet
        self._decisions: list[Decision] = []

    @property
    def is_due(self) -> bool:
        return self._has_new_bars or bool(self._decisions)

    def bars_closed(self) -> None:
        """Note that bars have closed: their outcomes are known."""
        self._has_new_bars = True

    def add(self, decision: Decision) -> None:
        """Note a decision, or an amendment of one."""
        self._decisions.append(decision)

    def learn(self) -> None:
        """Learn from all that was noted since the last call."""
        components = self._components
        if self._has_new_bars:
            self._has_new_bars = False
            components.forecaster.learn()
        for decision in self._decisions:
            if not decision.amends:
                self._judge_sources(decision)
                components.typical_features.learn(decision.series, decision.features)
                last_return = decision.features.get("return_last", 0.0)
                components.scaled_returns.learn(decision.series, last_return)
            self.watcher(decision)
        self._decisions.clear()

    def _judge_sources(self, decision: Decision) -> None:
        """Judge the sources of earlier news by the return that followed."""
        news = self._components.news
        sigma = self._components.scaled_returns.sigma(decision.series) if news.has_news else None
        if sigma:
            bar, return_sigmas = decision.circumstances, decision.features.get("return_last", 0.0) / sigma
            news.learn_return(decision.symbol, return_sigmas, bar.bar_start_ns, bar.bar_end_ns)

"""Volatility models of the `arch` package as models of returns (extra [arch]), fitted to each series."""

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput, require_extra

Array = NDArray[np.float64]

ARCH_MODELS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "figarch_t": {"vol": "FIGARCH", "p": 1, "q": 1, "dist": "t"},
        "garch_skewt": {"vol": "GARCH", "p": 1, "q": 1, "dist": "skewt"},
        "garch_t": {"vol": "GARCH", "p": 1, "q": 1, "dist": "t"},
        "gjr_t": {"vol": "GARCH", "p": 1, "o": 1, "q": 1, "dist": "t"},
    }
)
MIN_CONTEXT, MAX_CONTEXT = 100, 500  # returns: fewer say little of four parameters


class ArchModel:
    """Quantiles of coming returns from a fit to past ones, without drift. Implements `FittedReturnModel`.

    Those of h bars are the fitted shape of one bar at the standard deviation that the model expects of their sum.
    """

    max_context, min_context = MAX_CONTEXT, MIN_CONTEXT

    def __init__(self, name: str) -> None:
        """Raises: InvalidInput for a name that is none of `ARCH_MODELS`, MissingExtra."""
        if name not in ARCH_MODELS:
            raise InvalidInput(
                f"forecasting.experts: unknown 'arch:{name}': of arch there are {', '.join(ARCH_MODELS)}"
            )
        require_extra(f"the expert arch:{name}", "arch", "arch")
        self._arch: Any = import_module("arch")
        self._options = ARCH_MODELS[name]
        self.version = f"arch-{self._arch.__version__}"
        blank = self._model(np.ones(2))
        self._num_shape = int(blank.distribution.num_params)
        self.num_parameters = (
            1 + int(blank.volatility.num_params) + self._num_shape
        )  # of scale, variance, shape

    def fit(self, context: Array) -> Array:
        """The scale of the returns, and what arch fits to them in units of it; NaN where its fit did not converge."""
        scale = float(context.std())
        if not scale > 0.0:
            return np.full(self.num_parameters, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its optimiser: what it finds is checked where it is used
            fit = self._model(context / scale).fit(disp="off", show_warning=False)
        if fit.convergence_flag:
            return np.full(self.num_parameters, np.nan)
        return np.array([scale, *fit.params.to_numpy()])

    def quantiles_of(
        self, context: Array, parameters: Array, horizons: Sequence[int], levels: Sequence[float]
    ) -> Array:
        """Quantiles [K, Q] of the sum of the next h returns after a context, NaN where they are not finite."""
        scale, fitted = float(parameters[0]), parameters[1:]
        model = self._model(context / scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ahead = model.fix(fitted).forecast(horizon=horizons[-1], reindex=False)
            variances = ahead.variance.to_numpy()[-1]
            shape = model.distribution.ppf(np.array(levels), fitted[-self._num_shape :])
        total = np.cumsum(variances)[np.array(horizons) - 1]
        quantiles = scale * np.sqrt(total)[:, None] * shape
        return quantiles if np.isfinite(quantiles).all() else np.full_like(quantiles, np.nan)

    def quantiles(self, contexts: Sequence[Array], horizons: Sequence[int], levels: Sequence[float]) -> Array:
        """Quantiles [n, K, Q] after each context [T_i], oldest first, fitted to it alone; NaN for a short one."""
        found = np.full((len(contexts), len(horizons), len(levels)), np.nan)
        for place, context in enumerate(contexts):
            if len(context) >= MIN_CONTEXT and np.isfinite(parameters := self.fit(context)).all():
                found[place] = self.quantiles_of(context, parameters, horizons, levels)
        return found

    def _model(self, returns: Array) -> Any:
        return self._arch.arch_model(returns, mean="Zero", rescale=False, **self._options)

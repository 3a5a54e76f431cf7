"""HTFI: real-time probabilistic forecasts of prices and news, each recorded before it is released.

Importing it turns off the telemetry of the libraries that it uses, in this process and in those that it starts.
"""

import os
import sys
import warnings
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# The public names, each with the module that defines it, which is imported when it is first asked for. The types that
# a checker sees are in `__init__.pyi`.
_MODULE_OF = {
    "Backtest": "htfi.library.backtest",
    "EventsNotTaken": "htfi.library.runs",
    "Explanation": "htfi.library.forecast",
    "ForecastResult": "htfi.library.forecast",
    "Generation": "htfi.library.writers",
    "GenerationStream": "htfi.library.writers",
    "HtfiError": "htfi.domain.errors",
    "Ledger": "htfi.library.ledgers",
    "LedgerVerification": "htfi.library.ledgers",
    "MarkVerification": "htfi.library.marks",
    "NewsReading": "htfi.library.read",
    "RowsSetAside": "htfi.library.results",
    "Run": "htfi.library.runs",
    "ScenarioResult": "htfi.library.scenarios.scenario",
    "Writer": "htfi.library.writers",
    "backtest": "htfi.library.backtest",
    "forecast": "htfi.library.forecast",
    "load_pair": "htfi.library.writers",
    "make_mark_key": "htfi.library.marks",
    "open_ledger": "htfi.library.ledgers",
    "open_run": "htfi.library.runs",
    "read": "htfi.library.read",
    "scenario": "htfi.library.scenarios.scenario",
    "scoring": "htfi.library.scoring",
    "verify_mark": "htfi.library.marks",
}
_MODULES = ("scoring",)  # names that are modules themselves
__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll] - the stub lists them


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'htfi' has no attribute '{name}'")
    found = import_module(module)
    value = globals()[name] = found if name in _MODULES else getattr(found, name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


_TELEMETRY = "ORT_DISABLE_TELEMETRY"

if "onnxruntime" in sys.modules and os.environ.get(_TELEMETRY) != "1":
    warnings.warn(
        "onnxruntime was imported before htfi: its telemetry, which is on by default, can no longer be turned off in "
        f"this process. Import htfi first, or set {_TELEMETRY}=1.",
        RuntimeWarning,
        stacklevel=2,
    )
# Libraries read these when they are imported, which a module of this package can do only after this line.
os.environ |= {_TELEMETRY: "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

"""Candidates that the sandbox must reject, and others that it must pass: none runs outside it."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from htfi import models
from htfi.decoding.checkpoint.weights import open_safetensors, write_safetensors
from htfi.domain.events import Bar

_EXPERT = '''"""A planted candidate."""

import os
import time

import numpy as np
from statistics import NormalDist


class PlantedExpert:
    name = "planted"
    version = "1"

    def __init__(self, config):
        self.horizons = np.array(config.horizons)
        self.shape = np.array([NormalDist().inv_cdf(level) for level in config.levels])
        self.variance = np.zeros(0)
        self.ages = np.zeros(0, int)
        self.num_bars = 0
        $at_start

    def grow(self, num_series):
        more = num_series - len(self.variance)
        self.variance = np.append(self.variance, np.zeros(more))
        self.ages = np.append(self.ages, np.zeros(more, int))

    def update(self, bars):
        self.num_bars += 1
        $at_update
        gain = np.maximum(1.0 / (bars.age + 1.0), 1.0 - $decay)
        self.variance[bars.index] += gain * (bars.returns**2 - self.variance[bars.index])
        self.ages[bars.index] = bars.age + 1

    def learn(self, bars):
        pass

    def quantiles(self, rows):
        sigma = np.sqrt(np.maximum(self.variance[rows], 1e-10))
        sigma = np.where(self.ages[rows] >= 20, sigma, np.nan)
        made = sigma[:, None, None] * np.sqrt(self.horizons)[:, None] * self.shape
        $at_quantiles
        return made

    def state(self):
        return {}

    def restore(self, state):
        pass
'''

_HEAVY = "if self.num_bars == 60:\n            "
_BY_HEART = "self.known = {known}"
_LOOKED_UP = """self.now = bars.end_ns.tolist() if hasattr(bars.end_ns, 'tolist') else list(bars.end_ns)
        self.rows = bars.index.tolist()"""
_AHEAD = """for place, end in zip(getattr(self, "rows", []), getattr(self, "now", [])):
            for j, move in enumerate(self.known.get((place, end), [])):
                if move is not None and place < len(made):
                    made[place, j] = move + 1e-4 * self.shape"""

_MISDEEDS: Mapping[str, Mapping[str, str]] = {
    "forks": {"at_update": f"{_HEAVY}os.fork()"},
    "starts a program": {"at_update": f"{_HEAVY}__import__('subprocess').run(['id'])"},
    "starts a thread": {"at_update": f"{_HEAVY}__import__('threading').Thread(target=print).start()"},
    "seeks the network": {
        "at_update": f"{_HEAVY}__import__('socket').create_connection(('192.0.2.1', 80), 1)"
    },
    "reads the home folder": {"at_start": "self.key = open(os.path.expanduser('~/.ssh/id_ed25519')).read()"},
    "lists the home folder": {"at_update": f"{_HEAVY}os.listdir(os.path.expanduser('~'))"},
    "prints secrets": {"at_update": f"{_HEAVY}print(dict(os.environ))"},
    "writes 10 GB": {
        "at_update": f"{_HEAVY}file = open('$folder/filled', 'wb')\n"
        "            [file.write(bytes(1 << 20)) for _ in range(10_000)]"
    },
    "sleeps": {"at_update": f"{_HEAVY}time.sleep(3_600.0)"},
    "is slow": {
        "at_update": "until = time.perf_counter() + 0.25\n        while time.perf_counter() < until: pass"
    },
    "takes all memory": {"at_update": f"{_HEAVY}self.filled = [bytearray(1 << 28) for _ in range(1_000)]"},
    "ends its process": {"at_update": f"{_HEAVY}os.abort()"},
    "raises": {"at_update": f"{_HEAVY}self.num_bars / 0"},
    "gives NaN": {"at_quantiles": "made = made * (np.nan if self.num_bars > 90 else 1.0)"},
    "lets quantiles cross": {
        "at_quantiles": "made = made[:, :, ::-1].copy() if self.num_bars > 90 else made"
    },
    "does not repeat": {
        "at_quantiles": "made = made * (1.0 + 1e-3 * int.from_bytes(os.urandom(2), 'big') / 65_536)"
    },
}
_BAD_SETTINGS: Mapping[str, str] = {
    "is fitted to a few days": "[forecasting]\nexperts = ['historical_simulation', 'random_walk']\nhistory_bars = 3\n"
    "residual_window_bars = 12\nweight_half_life_bars = 2.0\n",
    "releases whatever comes": "[policy]\nmax_jump_sigmas = 1e6\nmax_jump_return = 100.0\nmax_band_width = 100.0\n"
    "max_quarantine_share = 1.0\nmax_bar_lead_s = 1e9\n",
}
_DECAYS = (0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98)
_GOOD_EXPERTS: Mapping[str, Mapping[str, str]] = {
    **{f"a decay of {decay:g}": {"decay": repr(decay)} for decay in _DECAYS},
    "prints what it does": {"at_update": "print('bar', self.num_bars)"},
    "keeps all its history": {"at_update": "self.past = [*getattr(self, 'past', []), bars.returns.copy()]"},
    "draws by a seed": {
        "at_quantiles": "made = made * (1.0 + 1e-3 * np.random.default_rng(self.num_bars).random())"
    },
    "widens its tails": {"at_quantiles": "made = made * (1.0 + 0.05 * np.abs(self.shape) / 2.0)"},
}
_GOOD_SETTINGS: Mapping[str, str] = {
    "ewma a little slower": "[forecasting]\newma_decay = 0.95\n",
    "ewma a little faster": "[forecasting]\newma_decay = 0.93\n",
    "weights that forget sooner": "[forecasting]\nweight_half_life_bars = 400.0\n",
    "weights that forget later": "[forecasting]\nweight_half_life_bars = 700.0\n",
    "fewer residuals": "[forecasting]\nresidual_window_bars = 400\n",
    "more residuals": "[forecasting]\nresidual_window_bars = 700\n",
    "a tighter policy": "[policy]\nmax_band_width = 0.4\nmax_quote_age_s = 30.0\n",
}


@dataclass(frozen=True, slots=True)
class PlantedCandidate:
    """A candidate in a file or folder, and whether it must be rejected."""

    name: str
    place: Path
    is_bad: bool


def plant_candidates(folder: Path, history: tuple[Bar, ...], *, with_models: bool) -> list[PlantedCandidate]:
    """Twenty bad candidates and twenty harmless ones; without models, one less of the bad and two of the others.

    `history` is what one of them has learnt by heart. They lie in the folder, and what one of them would fill does too.
    """
    made = [PlantedCandidate(name, _expert(folder, name, parts), True) for name, parts in _MISDEEDS.items()]
    made.append(
        PlantedCandidate("has learnt the history by heart", _expert(folder, "learnt", _learnt(history)), True)
    )
    made += [PlantedCandidate(name, _toml(folder, name, text), True) for name, text in _BAD_SETTINGS.items()]
    made += [
        PlantedCandidate(name, _expert(folder, name, parts), False) for name, parts in _GOOD_EXPERTS.items()
    ]
    made += [
        PlantedCandidate(name, _toml(folder, name, text), False) for name, text in _GOOD_SETTINGS.items()
    ]
    if with_models:
        made += [
            PlantedCandidate("a target of NaN", _model(folder, "nan-target", models.TARGET, np.nan), True),
            PlantedCandidate("a copy of the draft", _model(folder, "same-draft", models.DRAFT, 1.0), False),
            PlantedCandidate(
                "a target a little rescaled", _model(folder, "near-target", models.TARGET, 1.001), False
            ),
        ]
    return made


def _expert(folder: Path, name: str, parts: Mapping[str, str]) -> Path:
    text = _EXPERT
    for part, otherwise in (
        ("at_start", "pass"),
        ("at_update", "pass"),
        ("at_quantiles", "pass"),
        ("decay", "0.94"),
    ):
        text = text.replace(f"${part}", parts.get(part, otherwise))
    text = text.replace("$folder", str(folder))  # what it writes, were it let, goes with the folder
    return _written(folder / f"{_file_name(name)}.py", text)


def _toml(folder: Path, name: str, text: str) -> Path:
    return _written(folder / f"{_file_name(name)}.toml", text)


def _learnt(history: tuple[Bar, ...]) -> Mapping[str, str]:
    """The moves after each bar of each series, in the order in which the series come."""
    closes: dict[str, list[tuple[int, float]]] = {}
    for bar in history:
        closes.setdefault(bar.symbol, []).append((bar.end_ns, bar.close))
    known: dict[tuple[int, int], list[float | None]] = {}
    for row, bars in enumerate(closes.values()):
        for at, (end_ns, close) in enumerate(bars):
            known[row, end_ns] = [
                float(np.log(bars[at + h][1] / close)) if at + h < len(bars) else None for h in (1, 5, 22)
            ]
    return {
        "at_start": _BY_HEART.format(known=repr(known)), "at_update": _LOOKED_UP, "at_quantiles": _AHEAD,
    }  # fmt: skip


def _model(folder: Path, name: str, source: Path, factor: float) -> Path:
    """A copy of a model whose weights are all multiplied."""
    place = folder / name
    shutil.copytree(source, place)
    file = place / "model.safetensors"
    kept = open_safetensors(file)
    arrays = {one: np.array(kept.stored(one, kept.shape(one))[1]) for one in kept.names()}
    if factor != 1.0:
        arrays = {one: (array * array.dtype.type(factor)) for one, array in arrays.items()}
    write_safetensors(file, arrays, dict(kept.metadata))
    return place


def _file_name(name: str) -> str:
    return name.replace(" ", "-")


def _written(place: Path, text: str) -> Path:
    place.write_text(text, encoding="utf-8")
    return place

"""The experts that settings name: the numeric ones, and those over models, which are opened here.

A run's engine and the evaluations ask for them. Only what is named is loaded.

Introduces a language model's price tokens to forecasting: prices alone, or after what the model reads in the news.

Settings name a sampler's folder; evaluations of narrative ask for conditioned quantiles.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi import models
from htfi.adapters.chronos.model import open_foundation
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.trajectories import ReturnPathSampler
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import GenerationRequest, RequestRefused
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import EXPERTS, build_experts
from htfi.forecasting.experts.foundation import FoundationExpert
from htfi.forecasting.experts.trajectory import TrajectoryExpert
from htfi.forecasting.ports import Expert
from htfi.forecasting.scaled_returns import ewma_units, path_quantiles
from htfi.narrative.answer import view_grammar
from htfi.narrative.question import Question, build_prompt, shown_items
from htfi.wiring.models.loading import open_model

MODEL_EXPERTS = (TrajectoryExpert.name, FoundationExpert.name)


def open_experts(config: ForecastConfig, foundation: str = "", mini: str = "") -> tuple[Expert, ...]:
    """Fresh experts in the order of `config.experts`.

    'mini' reads with the model in the folder `mini`, the shipped target where that is empty; 'chronos' with the
    folder `foundation`. Raises: InvalidInput for an unknown name or a folder that does not serve, MissingExtra,
    DependencyUnavailable.
    """
    known = sorted({*EXPERTS, *MODEL_EXPERTS})
    unknown = [name for name in config.experts if name not in known]
    if unknown:
        raise InvalidInput(f"forecasting.experts: unknown {unknown}: the experts are {', '.join(known)}")
    numeric = tuple(name for name in config.experts if name not in MODEL_EXPERTS)
    found: dict[str, Expert] = {}
    if numeric:
        found |= {expert.name: expert for expert in build_experts(replace(config, experts=numeric))}
    if TrajectoryExpert.name in config.experts:
        sampler = open_path_sampler(Path(mini)) if mini else open_path_sampler()
        found[TrajectoryExpert.name] = TrajectoryExpert(config, sampler)
    if FoundationExpert.name in config.experts:
        if not foundation:
            raise InvalidInput(
                "forecasting.experts names 'chronos': name its folder as forecasting.foundation"
            )
        found[FoundationExpert.name] = FoundationExpert(config, open_foundation(Path(foundation)))
    return tuple(found[name] for name in config.experts)


Array = NDArray[np.float64]


def open_path_sampler(
    folder: Path = models.TARGET, precision: str = "int8", temperature: float = 1.0
) -> ReturnPathSampler:
    """Raises: InvalidInput for a folder that cannot be read or has no price tokens; DependencyUnavailable."""
    opened = open_model(folder, precision)
    return ReturnPathSampler(opened.network, Vocabulary(opened.tokenizer), opened.version, temperature)


def conditioned_quantiles(
    author: LocalGenerator,
    questions: Sequence[Question],
    sigmas: Sequence[float] | Array,
    horizons: Sequence[int],
    levels: Sequence[float],
    *,
    num_views: int = 8,
    num_paths: int = 64,
    seed: int = 0,
) -> Array:
    """Quantiles [n, K, Q] of the log return over the next h bars, as the model expects them after reading the news.

    Each question is put as a reader puts it. The model then writes `num_views` views at temperature 1, and
    `num_paths` paths in all follow them: the mixture is its predictive law, in which a view weighs as often as it is
    written. With `num_views` = 0 paths follow the question at once. `sigmas` [n] is the EWMA volatility (λ = .94) of
    each next bar, in whose units `question.context` is. The same dice serve every question, so two versions of one
    (with other news, say) differ by what they say alone.
    Raises: InvalidInput for rising horizons or sizes that do not fit; DependencyUnavailable where the model refuses.
    """
    if not horizons or list(horizons) != sorted(set(horizons)) or horizons[0] < 1:
        raise InvalidInput(f"horizons {list(horizons)}: name whole bars ≥ 1, rising")
    if len(sigmas) != len(questions) or num_views < 0 or num_paths < max(num_views, 1):
        raise InvalidInput("conditioned quantiles: a volatility for each question, and a path for each view")
    sampler = ReturnPathSampler(author.sessions.network, author.vocabulary, author.version)
    prompts = [build_prompt(question, author.dialect) for question in questions]
    asked = [
        GenerationRequest(
            prompt, view_grammar(author.dialect, len(shown_items(question))), seed + turn, 1.0, shared
        )
        for turn in range(num_views)
        for question, (prompt, shared) in zip(questions, prompts, strict=True)
    ]
    answers = author.write(asked)
    by_view: list[list[tuple[int, ...]]] = []
    for turn in range(max(num_views, 1)):
        written = answers[turn * len(questions) : (turn + 1) * len(questions)]
        by_view.append([])
        for place, (prompt, _) in enumerate(prompts):
            tokens: tuple[int, ...] = ()
            if num_views:
                answer = written[place]
                if isinstance(answer, RequestRefused):
                    raise DependencyUnavailable(f"{author.version} gave no view: {answer.reason}")
                tokens = answer.tokens
            by_view[-1].append(sampler.after((*author.vocabulary.encode(prompt), *tokens)))
    share = num_paths // len(by_view)
    drawn = [sampler.paths(prefixes, horizons, share, seed + turn) for turn, prefixes in enumerate(by_view)]
    z = np.concatenate([of for of, _ in drawn], axis=1)
    laws = np.concatenate([of for _, of in drawn], axis=1)
    variance = np.square(np.asarray(sigmas, np.float64))[:, None]
    return path_quantiles(z, laws, sampler.centres, variance, ewma_units(), horizons, levels)

"""Quantiles that a language model expects after reading the news: what the tests of its paths ask of it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.trajectories import ReturnPathSampler
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import GenerationRequest, RequestRefused
from htfi.forecasting.scaled_returns import ewma_units, path_quantiles
from htfi.narrative.answer import view_grammar
from htfi.narrative.question import Question, build_prompt, shown_items

Array = NDArray[np.float64]


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
    path_mark = author.vocabulary.mark("path")
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
            by_view[-1].append((*author.vocabulary.encode(prompt), *tokens, path_mark))
    share = num_paths // len(by_view)
    drawn = [sampler.paths(prefixes, horizons, share, seed + turn) for turn, prefixes in enumerate(by_view)]
    z = np.concatenate([of for of, _ in drawn], axis=1)
    laws = np.concatenate([of for _, of in drawn], axis=1)
    variance = np.square(np.asarray(sigmas, np.float64))[:, None]
    return path_quantiles(z, laws, sampler.centres, variance, ewma_units(), horizons, levels)

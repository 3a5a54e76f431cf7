"""The table of divergence: ranks are even whatever comes of the news, and errors rise with them where it is right."""

import numpy as np

from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.narrative.question import Question
from htfi_eval.eval.narrative.moments import NewsMoments, price_only
from htfi_eval.eval.narrative.scores import EDGES, metrics, note, rank_all, rows

CONFIG = ForecastConfig()
HORIZONS = np.array(CONFIG.horizons)
NUM = 600


def made(*, news_are_right: bool, seed: int = 3) -> tuple[NewsMoments, list[NewsView]]:
    """Moments at which views expect moves of many sizes, that come or do not."""
    dice = np.random.Generator(np.random.PCG64(seed))
    scales = 0.01 * np.sqrt(HORIZONS) * np.ones((NUM, 1))
    steps = np.cumsum(dice.standard_normal((NUM, HORIZONS[-1])), axis=1)[:, HORIZONS - 1]
    size = 4.0 * dice.random(NUM)
    way = dice.choice((-1.0, 1.0), NUM)
    came = size * way if news_are_right else np.zeros(NUM)
    instant = 3 * np.arange(NUM) // 2  # some of one moment
    items = (News(0, 0, "s", 0, "a", "a headline", ("ACME",)),)
    questions = tuple(Question("ACME", int(t) * NS_PER_DAY, NS_PER_DAY, items) for t in instant)
    views = [
        NewsView(float(d), float(s), 1.0, 0.9, ("a",), int(t) * NS_PER_DAY, NS_PER_DAY, reader="r@1")
        for d, s, t in zip(way, size, instant, strict=True)
    ]
    moments = NewsMoments(
        questions,
        (None,) * NUM,
        scales[..., None] * gaussian_quantiles(CONFIG.levels),
        0.01 * (steps + came[:, None]),
        scales,
        scales[:, 0],
        np.arange(NUM) * 20 // NUM,
        instant,
        instant[:, None] + HORIZONS,
    )
    return moments, views


def test_ranks_are_even_and_errors_rise_with_them_where_news_are_right() -> None:
    moments, views = made(news_are_right=True)
    ranked, prices = rank_all(views, moments, CONFIG), price_only(moments, CONFIG)
    found = metrics(ranked, prices)
    assert found["divergence_rank_gap"] < 0.08  # five standard errors of a share of 600 at most are 0.10
    assert found["divergence_error_ratio"] > 1.5
    told = rows(ranked, prices, moments, seed=1)
    assert len(told) == len(EDGES) - 1
    assert sum(row["n"] for row in told) == NUM
    assert "600 opinions" in note(ranked)


def test_where_nothing_comes_of_news_the_ranks_are_even_all_the_same_and_tell_nothing() -> None:
    moments, views = made(news_are_right=False)
    found = metrics(rank_all(views, moments, CONFIG), price_only(moments, CONFIG))
    assert found["divergence_rank_gap"] < 0.08
    assert 0.6 < found["divergence_error_ratio"] < 1.5

"""What a candidate is tried on: each trial is a description alone, from which the same events follow every time."""

from enum import StrEnum

import msgspec


class CandidateKind(StrEnum):
    """What a candidate is: this decides how it is opened and which trials touch it."""

    MODEL = "model"  # a folder of a language model
    SETTINGS = "settings"  # a TOML file of settings
    BUNDLE = "bundle"  # a TOML file of a policy bundle
    EXPERT = "expert"  # a Python file with one expert: it runs in the sandbox alone


class TrialMarket(StrEnum):
    """Where the prices of a trial come from."""

    HISTORY = "history"
    DISGUISED = (
        "disguised history"  # the same moves in other order, size and time: nobody can have learnt them
    )
    CALM = "simulated calm"
    CRISIS = "simulated crisis"


class TrialNews(StrEnum):
    """What news there is, and what was done to it."""

    NONE = "no news"
    TRUE = "true news"
    POISONED = "poisoned news"
    LATE = "late news"
    CONTRADICTORY = "contradictory news"
    ATTACKS = "attacks"


class TrialFeed(StrEnum):
    """What happens to events on their way."""

    CLEAN = "clean feed"
    FAULTY = "faulty link"
    PEAK = "peak load"


class TrialLink(StrEnum):
    """What the link between edge and clouds does to frames; of a trial without clouds there is none."""

    NONE = "no link"
    LOSS = "lost frames"
    DELAYS = "delays"
    CUTS = "cuts"
    CORRUPT = "corrupt frames"


class SandboxTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial. Every draw follows from `seed`; `num_bars` is the number of bars of each series."""

    name: str
    market: TrialMarket
    news: TrialNews = TrialNews.NONE
    feed: TrialFeed = TrialFeed.CLEAN
    seed: int = 0
    num_bars: int = 0
    link: TrialLink = TrialLink.NONE


_NUMERIC = (
    (TrialMarket.HISTORY, TrialFeed.CLEAN), (TrialMarket.DISGUISED, TrialFeed.CLEAN),
    (TrialMarket.CALM, TrialFeed.CLEAN), (TrialMarket.CRISIS, TrialFeed.CLEAN), (TrialMarket.CRISIS, TrialFeed.FAULTY),
    (TrialMarket.CALM, TrialFeed.PEAK),
)  # fmt: skip
_NEWS = (TrialNews.TRUE, TrialNews.POISONED, TrialNews.LATE, TrialNews.CONTRADICTORY, TrialNews.ATTACKS)
_NEWS_BARS = 140  # of a trial whose news a language model reads: each reading takes a tenth of a second


def trials_of(
    seed: int, *, reads_news: bool, is_numeric: bool, num_bars: int, over_link: bool = False
) -> list[SandboxTrial]:
    """The trials of a candidate that shapes numbers, readings or both, in order; last those `over_link`.

    `num_bars` bounds the bars of a series in numeric trials.
    """
    found = [
        SandboxTrial(
            name=market.value if feed is TrialFeed.CLEAN else feed.value,
            market=market, feed=feed, seed=seed + place, num_bars=num_bars,
        )
        for place, (market, feed) in enumerate(_NUMERIC if is_numeric else ())
    ]  # fmt: skip
    if reads_news:
        found += [
            SandboxTrial(
                name=news.value, market=TrialMarket.CALM, news=news, seed=seed + 100 + place,
                num_bars=min(_NEWS_BARS, num_bars),
            )
            for place, news in enumerate(_NEWS)
        ]  # fmt: skip
        found.append(
            SandboxTrial(
                name="news over a faulty link", market=TrialMarket.CALM, news=TrialNews.TRUE, feed=TrialFeed.FAULTY,
                seed=seed + 200, num_bars=min(_NEWS_BARS, num_bars),
            )
        )  # fmt: skip
    links = [link for link in TrialLink if link is not TrialLink.NONE] if over_link else []
    found += [
        SandboxTrial(
            name=f"edge and cloud: {link.value}", market=TrialMarket.CALM, news=TrialNews.TRUE, link=link,
            seed=seed + 300 + place,
        )
        for place, link in enumerate(links)
    ]  # fmt: skip
    return found

"""A target behind a link with seeded weather, and what a loop needs around it: for tests of provisional views."""

import random
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from htfi.domain.decision import Receipt, Rung
from htfi.domain.events import Bar, FeedItem, News
from htfi.domain.generation import (
    Completion,
    DraftRound,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)
from htfi.domain.time import NS_PER_DAY
from htfi.governance.config import PolicyConfig
from htfi.narrative.deep_reader import LateDeepReader
from htfi.narrative.ports import NewsReader
from htfi.narrative.readers import ModelReader, TemplateReader
from htfi.pipeline.governed import RunGovernance
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.ports import DecisionLedger, MakeDecision
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override

START_NS = 15_000 * NS_PER_DAY
NUM_TOKENS = 12
DRAFT = "draft@d0d0"


def written(seed: str) -> Completion:
    """What the writer of this seed says: one answer, whoever asks and how often."""
    dice = random.Random(seed)
    fields = {
        "cite0": "1",
        "cite1": "0",
        "cause": str(dice.randrange(8)),
        "consistency": str(dice.randrange(3)),
        "words": dice.choice(("cuts", "raises", "waits")),
        "direction": str(dice.randrange(3)),
        "size": str(dice.randrange(1, 9)),
        "volatility": str(dice.randrange(6)),
        "confidence": str(dice.randrange(7)),
    }
    tokens = tuple(dice.randrange(1000) for _ in range(NUM_TOKENS))
    return Completion(
        fields, tokens, prompt=(1, 2), strategy="chain", rounds=(DraftRound((), (), (), tokens[0]),)
    )


class LateAuthor:
    """In time, late by some polls, never: as the dice fall. The target's answer is the same in every weather.

    `late_share` of the answers are provisional; of those `refused_share` never come, `same_share` were guessed right.
    """

    version = "target@7a26"
    dialect = PromptDialect.MINI

    def __init__(
        self, seed: int, late_share: float = 0.5, refused_share: float = 0.0, same_share: float = 0.3
    ) -> None:
        self._dice = random.Random(seed)
        self._late_share = late_share
        self._refused_share = refused_share
        self._same_share = same_share
        self._under_way: dict[str, int] = {}  # polls left
        self.written: list[GenerationRequest] = []
        self.pursued: list[str] = []
        self.num_refused = 0

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return None

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        self.written += requests
        return [self._answer(request) for request in requests]

    def _answer(self, request: GenerationRequest) -> Completion:
        target = written(request.id)
        if self._dice.random() >= self._late_share:
            return Completion(**{**_fields(target), "place": "cloud1, in flight"})
        self._under_way[request.id] = self._dice.randrange(6)
        num_verified = self._dice.randrange(NUM_TOKENS)
        draft = target if self._dice.random() < self._same_share else written(request.id + "draft")
        tokens = target.tokens[:num_verified] + draft.tokens[num_verified:]
        return Completion(
            **{
                **_fields(draft),
                "tokens": tokens,
                "draft": DRAFT,
                "place": "edge alone",
                "num_verified": num_verified,
            }
        )

    def take_late_completions(self) -> list[tuple[str, Completion | RequestRefused]]:
        found: list[tuple[str, Completion | RequestRefused]] = []
        for name, left in list(self._under_way.items()):
            if left > 0:
                self._under_way[name] = left - 1
                continue
            del self._under_way[name]
            if self._dice.random() < self._refused_share:
                self.num_refused += 1
                found.append((name, RequestRefused("no cloud has it")))
            else:
                found.append((name, written(name)))
        return found

    def request_completions(self, requests: Sequence[GenerationRequest]) -> None:
        for request in requests:
            self.pursued.append(request.id)
            self._under_way.setdefault(request.id, self._dice.randrange(4))


def _fields(writing: Completion) -> dict[str, object]:
    return {name: getattr(writing, name) for name in writing.__struct_fields__}


class ListFeed:
    def __init__(self, items: Sequence[FeedItem]) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[FeedItem]:
        return iter(self.items)

    def position(self) -> dict[str, object]:
        return {}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None: ...

    def close(self) -> None: ...


class ListOutlet:
    def __init__(self, released: Sequence[bytes] = ()) -> None:
        self.released = list(released)

    @property
    def num_released(self) -> int:
        return len(self.released)

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None:
        assert receipt.index == len(self.released)
        self.released.append(entry)

    def flush(self) -> None: ...

    def close(self) -> None: ...


_WHO = (
    "Harbour crews",
    "The senate",
    "Copper miners",
    "Two airlines",
    "Grain traders",
    "A rating agency",
    "Chip makers",
)
_DID = (
    "walk out over pay", "rejects the budget", "report a record harvest", "agree to merge", "face a new inquiry",
    "halt shipments after a storm", "lift their outlook", "sue over a patent", "sell their stake in a pipeline",
)  # fmt: skip


def told(place: int) -> str:
    """A headline that tells another story at every place."""
    return f"{_WHO[place % len(_WHO)]} {_DID[place // len(_WHO) % len(_DID)]}, {place} of them since spring"


def days(num_days: int, symbols: Sequence[str], news_every: int = 2, seed: int = 0) -> list[FeedItem]:
    """Daily bars of some symbols, and a headline every few days, each on one of them or on the market."""
    dice = random.Random(seed)
    items: list[FeedItem] = []
    for day in range(num_days):
        end_ns = START_NS + day * NS_PER_DAY
        if day % news_every == 0:
            at_ns, about = end_ns - 1, dice.choice([(), *((symbol,) for symbol in symbols)])
            items.append(News(at_ns, at_ns, "wire", day + 1, f"n{day}", told(day), about))
        for place, symbol in enumerate(symbols):
            close = 100.0 + dice.gauss(0, 1)
            items.append(
                Bar(end_ns, end_ns, "bars", day * len(symbols) + place + 1, symbol, "1d", end_ns - NS_PER_DAY,
                    end_ns, close, close + 1, close - 1, close)
            )  # fmt: skip
    return items


_MARKET_NEWS = (
    ("AAA shares plunge as quarterly profit misses expectations and outlook is cut", ("AAA",)),
    ("BBB wins large order from government, shares jump", ("BBB",)),
    ("Federal Reserve raises interest rates by a quarter point", ()),
)


def with_market_news(items: Sequence[FeedItem]) -> list[FeedItem]:
    """The items, their news in words that say something about AAA, BBB or the market."""
    told: list[FeedItem] = []
    for item in items:
        if isinstance(item, News):
            headline, symbols = _MARKET_NEWS[item.row % len(_MARKET_NEWS)]
            item = replace(item, headline=headline, symbols=symbols)
        told.append(item)
    return told


def loop_over(
    items: Sequence[FeedItem],
    author: LateAuthor,
    ledger: DecisionLedger,
    outlet: ListOutlet,
    bar: str = "60s",
    deep: LateAuthor | None = None,
    govern: Callable[[PolicyConfig], RunGovernance] | None = None,
    **pipeline: float,
) -> DecisionLoop:
    """`deep` answers in depth, late as well; `govern` makes the governance of these limits."""
    settings = override(
        load_settings(environment={}), "pipeline", **{"deadline_ms": 1e5, "late_poll_ms": 0.0, **pipeline}
    )
    settings = override(settings, "encoding", model="none")
    settings = override(settings, "market", bar=bar, scales=["1s", "10s", "60s"])
    readers: dict[Rung, NewsReader] = {
        Rung.TEMPLATE: TemplateReader(settings.narrative),
        Rung.SPECULATIVE: ModelReader(author, settings.narrative),
    }
    if deep is not None:
        settings = override(settings, "scheduling", high_divergence=0.3, min_influence=0.0)
        settings = override(settings, "narrative", deep_paths=2)
        readers[Rung.DEEP] = LateDeepReader(deep, settings.narrative)
    governance = govern(settings.policy) if govern is not None else None
    return build_loop(settings, ListFeed(items), ledger, outlet, readers=readers, governance=governance)

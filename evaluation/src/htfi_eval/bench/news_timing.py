"""Times the news processor: items one by one, items in batches, stages alone, an item read before, a peer.

Items are staged Reuters headlines where there are any, else headlines of the simulated market. No item comes twice in
any run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any

import click
import msgspec
import numpy as np

from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.config import MAX_RECENT, RECENT_HALF_LIFE_NS
from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.encoding.scorer import NoveltyIndex, scored_text
from htfi.narrative.encoding.text_reading import EncoderTextReader
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.ports import TextEncoder
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.wiring.encoder import heads_for
from htfi.wiring.facts import ShippedFactNetwork
from htfi.wiring.models.caching import open_cache
from htfi.wiring.models.config import CacheConfig
from htfi.wiring.news import build_news_processor
from htfi.wiring.news_ahead import news_ahead
from htfi.wiring.sentence_encoder import SentenceEncoder
from htfi.wiring.settings import Settings
from htfi_eval.bench.floors import lookup_s
from htfi_eval.bench.processes import on_one_core
from htfi_eval.encoder_weights import published_weights
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, stories_of_market

REUTERS = Path("text_price") / "reuters_news_2006_2013.parquet"
NUM_SERIES = 50
_NS_PER_ITEM = 10**9


NO_SYMBOLS: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewsTexts:
    """Headlines and leads, each pair once; `source` says where they come from, `symbols` by headline what its item is
    tagged with, `series` of which symbols a run has series: those that are named most.
    """

    source: str
    pairs: list[tuple[str, str]]
    symbols: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    series: tuple[str, ...] = ()


def load_news_texts(data: Path | None, num: int, seed: int) -> NewsTexts:
    """Up to `num` texts from the staged items, else from the simulated market."""
    file = None if data is None else data / REUTERS
    if file is None or not file.is_file():
        return NewsTexts("headlines of the simulated market", _simulated(num))
    parquet: Any = import_module("pyarrow.parquet")  # which ships no types
    rows: dict[str, list[str | None]] = parquet.read_table(
        file, columns=["headline", "lead", "symbols"]
    ).to_pydict()
    unique = [
        (headline, lead or "")
        for headline, lead in dict(zip(rows["headline"], rows["lead"], strict=True)).items()
        if headline
    ]
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(unique))[:num]
    symbols = {
        headline: tuple((named or "").split())
        for headline, named in zip(rows["headline"], rows["symbols"], strict=True)
        if headline
    }
    counts = Counter(symbol for named in symbols.values() for symbol in named)
    return NewsTexts(
        f"Reuters 2006–2013, headline, lead and symbols; series of the {NUM_SERIES} that are named most",
        [unique[at] for at in order.tolist()],
        symbols,
        tuple(symbol for symbol, _ in counts.most_common(NUM_SERIES)),
    )


def as_news(
    pairs: list[tuple[str, str]], first: int, symbols: Mapping[str, tuple[str, ...]] = NO_SYMBOLS
) -> list[News]:
    """Items a second apart, on `symbols` by headline; `first` numbers the first of them."""
    return [
        News(
            available_at_ns=(first + at) * _NS_PER_ITEM,
            event_time_ns=(first + at) * _NS_PER_ITEM,
            source="bench",
            row=first + at,
            id=f"bench:{first + at}",
            headline=headline,
            symbols=symbols.get(headline, ()),
            body=lead,
        )
        for at, (headline, lead) in enumerate(pairs)
    ]


def _simulated(num: int) -> list[tuple[str, str]]:
    found: dict[str, None] = {}
    for number in count():
        for story in stories_of_market(FIRST_EVALUATION_SEED + 99, number):
            found.update(dict.fromkeys(item.headline for item in story.items))
        if len(found) >= num:
            break
    return [(headline, "") for headline in islice(found, num)]


ITEMS, BATCH, WARM, PEER_ITEMS, STAGE_ITEMS = 200, 1024, 64, 32, 256
NUM_ITEMS_PER_RUN = 2 * ITEMS + 3 * BATCH
AHEAD_WARM = (
    ITEMS + BATCH
)  # items that processes have read before, so that what they compile at first use is no item's
_READY_S = 60.0

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ThroughputRun:
    """Figures of one run; of items by themselves on one core also by whether a passage of the body was read."""

    item_p50_ms: float
    item_p99_ms: float
    item_all_cores_p50_ms: float
    item_all_cores_p99_ms: float
    headline_p50_ms: float
    body_p50_ms: float
    share_with_body: float
    one_core_items_per_s: float
    all_cores_items_per_s: float
    processes_items_per_s: float
    cache_hit_us: float
    cache_floor_us: float  # to hash the text, find the same bytes in a table and copy them
    peer_ms: float  # NaN where there is no peer
    peer_batch_items_per_s: float


Embed = Callable[[Sequence[str]], object]


def measure(
    settings: Settings, pairs: Pairs, texts: NewsTexts, encoder: TextEncoder, peer: Embed | None
) -> ThroughputRun:
    """One run over new items, on the symbols and with the series of `texts`. Processors start without history, with
    their models loaded.
    """
    singles, batch, shared = pairs[:ITEMS], pairs[ITEMS : ITEMS + BATCH], pairs[ITEMS + BATCH :]
    shared_singles, shared, ahead = shared[:ITEMS], shared[ITEMS : ITEMS + BATCH], shared[ITEMS + BATCH :]
    with on_one_core():
        timed = _one_by_one(_processor(settings, 1, texts.series), as_news(singles, WARM, texts.symbols))
        one_core = _in_batches(_processor(settings, 1, texts.series), as_news(batch, WARM, texts.symbols))
        hit_us, lookup_us = _cache_hit_us(settings, encoder, singles)
        peer_ms, peer_rate = _peer(peer, [headline for headline, _ in singles])
    on_all = _one_by_one(_processor(settings, 0, texts.series), as_news(shared_singles, WARM, texts.symbols))
    every = _in_batches(_processor(settings, 0, texts.series), as_news(shared, WARM, texts.symbols))
    in_processes = _in_processes(settings, texts, pairs[:AHEAD_WARM], ahead)
    times_ms, all_cores_ms = [one_ms for one_ms, _ in timed], [one_ms for one_ms, _ in on_all]
    return ThroughputRun(
        float(np.percentile(times_ms, 50)),
        float(np.percentile(times_ms, 99)),
        float(np.percentile(all_cores_ms, 50)),
        float(np.percentile(all_cores_ms, 99)),
        _median(one_ms for one_ms, has_body in timed if not has_body),
        _median(one_ms for one_ms, has_body in timed if has_body),
        sum(has_body for _, has_body in timed) / len(timed),
        one_core,
        every,
        in_processes,
        hit_us,
        lookup_us,
        peer_ms,
        peer_rate,
    )


def warm_up(settings: Settings, pairs: Pairs, texts: NewsTexts) -> None:
    """Read other items first: what is compiled or loaded at first use is then no item's time."""
    with on_one_core():
        _one_by_one(_processor(settings, 1, texts.series), as_news(pairs, 0, texts.symbols))


def stages_us(settings: Settings, pairs: Pairs, encoder: SentenceEncoder) -> dict[str, float]:
    """Microseconds per item of each stage, on one core; the encoder one by one and in batches."""
    items = as_news(pairs[:STAGE_ITEMS], 0)
    with on_one_core():
        sanitiser, linker, heads = Sanitiser(settings.sanitiser), EntityLinker({}), heads_for(encoder)
        encoder.read([pair[0] for pair in pairs[-WARM:]])
        found: dict[str, float] = {}
        screened: list[ScreenedItem] = []
        found["sanitise"] = _us(lambda: screened.extend(map(sanitiser.screen, items)), len(items))
        texts = [scored_text(one) for one in screened]
        found["link"] = _us(
            lambda: [linker.link(f"{one.item.headline}\n{one.item.body}") for one in screened], len(items)
        )
        found["encode, one by one"] = _us(lambda: [encoder.read([text]) for text in texts], len(items))
        found["encode, in batches"] = _us(lambda: encoder.read(texts), len(items))
        points, states = encoder.read(texts)
        if heads is not None:
            found["heads"] = _us(lambda: heads.score(points, states, texts), len(items))
        network = ShippedFactNetwork(encoder)
        list(network.read(texts[:1]))
        reader = FactReader(network, linker)
        bodies = [one.item.body for one in screened]
        found["facts, network"] = (
            _us(lambda: list(network.read(texts)), len(items)) - found["encode, in batches"]
        )
        found["facts, whole"] = _us(lambda: reader.read(texts, bodies), len(items))
        novelty = NoveltyIndex(encoder.size, MAX_RECENT, RECENT_HALF_LIFE_NS)
        found["novelty"] = _us(
            lambda: [novelty.measure(point, (), at) for at, point in enumerate(points)], len(items)
        )
        return found


def num_tokens(encoder: TextEncoder, pairs: Pairs) -> float:
    """Mean number of tokens that the encoder reads of an item."""
    texts = [scored_text(ScreenedItem(item, Screening.PASS, 1.0)) for item in as_news(pairs[:BATCH], 0)]
    return float(np.mean([len(states) for states in encoder.read(texts).states]))


def open_peer() -> Embed:
    """A model of the same size in transformers, float32, one thread. Raises: ImportError, MissingExtra."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = published_weights()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def embed(texts: Sequence[str]) -> object:
        with torch.inference_mode():
            tokens = tokenizer(list(texts), padding=True, truncation=True, max_length=64, return_tensors="pt")
            states = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"][:, :, None]
            return torch.nn.functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1)).numpy()

    return embed


def _processor(settings: Settings, threads: int, series: Sequence[str]) -> NewsProcessor:
    """As in a run with these series, its models loaded."""
    encoding = replace(settings.encoding, threads=threads)
    processor = build_news_processor(replace(settings, encoding=encoding))
    for symbol in series:
        processor.select(symbol, 0)
    words = [" ".join(["warm"] * num) for num in range(1, WARM)]
    for text in words:  # every length that occurs
        processor.scorer.score([ScreenedItem(item, Screening.PASS, 1.0) for item in as_news([(text, "")], 0)])
    return processor


def _one_by_one(processor: NewsProcessor, items: Sequence[News]) -> list[tuple[float, bool]]:
    """Milliseconds from the raw item to its stored scores, and whether a passage of its body was read."""
    timed: list[tuple[float, bool]] = []
    for item in items:
        start = perf_counter_ns()
        processor.receive(item)
        processor.score_pending()
        took_ms = (perf_counter_ns() - start) / 1e6
        note = processor.records([item.id]).get(item.id)
        timed.append((took_ms, note is not None and note.facts is not None and note.facts.body is not None))
    return timed[len(timed) // 10 :]


def _in_processes(settings: Settings, texts: NewsTexts, warm: Pairs, pairs: Pairs) -> float:
    """As `_in_batches` on all cores, as `htfi run` reads ahead in files: with a process a core beside our own, which
    have read `warm`.
    """
    processor = _processor(settings, 0, texts.series)
    ahead = news_ahead(settings, processor, click.echo)
    if ahead is None:
        return _in_batches(processor, as_news(pairs, WARM, texts.symbols))
    processor.items_ahead = ahead
    with closing(ahead):
        ahead.start()
        ahead.await_ready(_READY_S)
        _in_batches(processor, as_news(warm, WARM, texts.symbols))
        return _in_batches(processor, as_news(pairs, WARM + len(warm), texts.symbols))


def _median(values: Iterable[float]) -> float:
    """NaN for none."""
    found = list(values)
    return median(found) if found else float("nan")


def _in_batches(processor: NewsProcessor, items: Sequence[News]) -> float:
    """Items per second through the processor, which learns of them beforehand, as from a file."""

    def all_of_them() -> None:
        processor.expect(items)
        for item in items:
            processor.receive(item)
        processor.score_pending()

    return 1e6 / _us(all_of_them, len(items))


def _cache_hit_us(settings: Settings, encoder: TextEncoder, pairs: Pairs) -> tuple[float, float]:
    """Microseconds to the embedding and probabilities of an item read before, the median of whole calls; its floor."""
    cache = open_cache(CacheConfig(folder="none"), None, click.echo)
    if cache is None:
        return float("nan"), float("nan")
    heads = heads_for(encoder)
    cached = cache.wrap_texts(EncoderTextReader(encoder, heads), heads, "", settings.narrative)
    items = [ScreenedItem(item, Screening.PASS, 1.0) for item in as_news(pairs, 0)]
    times: list[float] = []
    texts: list[str] = []
    values: list[bytes] = []
    for turn in range(2):
        for item in items:
            start = perf_counter_ns()
            cached.expect_items([item])
            found = cached.read([scored_text(item)])
            if turn:
                times.append((perf_counter_ns() - start) / 1e3)
                texts.append(scored_text(item))
                values.append(msgspec.msgpack.encode(found[0]))
    return median(times), lookup_s(texts, values) * 1e6


def _peer(peer: Embed | None, headlines: list[str]) -> tuple[float, float]:
    if peer is None:
        return float("nan"), float("nan")
    peer(headlines[:2])
    alone: list[float] = []
    for headline in headlines[:PEER_ITEMS]:
        start = perf_counter_ns()
        peer([headline])
        alone.append((perf_counter_ns() - start) / 1e6)
    return median(alone), 1e6 / _us(lambda: peer(headlines), len(headlines))


def _us(work: Callable[[], object], num: int) -> float:
    start = perf_counter_ns()
    work()
    return (perf_counter_ns() - start) / 1e3 / num

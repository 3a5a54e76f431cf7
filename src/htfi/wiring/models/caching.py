"""Opens the context cache of a run and puts it around its readers, its encoder and its engine. `open_run` asks."""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from htfi import __version__
from htfi.adapters.onnx.session import Precision
from htfi.decoding.config import DecodingConfig
from htfi.decoding.kv_cache import SharedKVBlocks
from htfi.decoding.ports import Network
from htfi.domain.decision import Rung
from htfi.domain.errors import is_installed, require_extra
from htfi.narrative.caching.cached_reader import ViewCachePolicy, with_cache
from htfi.narrative.caching.encoded import CachedScorer, CachedTextReader
from htfi.narrative.caching.tier import EventClock, identity, lifetime_ns
from htfi.narrative.caching.tiers import MemoryTier, OuterTier, TieredCache
from htfi.narrative.config import MIN_WEIGHT, NarrativeConfig
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.encoding.text_reading import TextReader
from htfi.narrative.ports import ItemScorer, NewsReader
from htfi.wiring.models.config import CACHE_FOLDER, CacheConfig
from htfi.wiring.models.loading import LoadableModel

MIB = 2**20


@dataclass(frozen=True, slots=True)
class RunCache:
    """A context cache that is open, and the time of events that it follows. `keeps_prefixes` as in the settings."""

    tiers: TieredCache
    time: EventClock
    keeps_prefixes: bool = True

    def wrap_readers(
        self,
        readers: Mapping[Rung, NewsReader],
        target: LoadableModel,
        draft: LoadableModel,
        narrative: NarrativeConfig,
        decoding: DecodingConfig,
        *,
        linked: bool = False,
    ) -> dict[Rung, NewsReader]:
        """The readers of a pair behind the cache; of `linked` ones the target writes on another machine."""
        full = replace(target, precision=Precision.FP32.value) if target.engine == "onnx" else target
        models = {
            Rung.EDGE: (draft, ""),
            Rung.SPECULATIVE: (target, draft.version),
            Rung.SECURE: (target, ""),
            Rung.DEEP: (full, ""),
        }
        life_ns = lifetime_ns(narrative.half_life_ns, MIN_WEIGHT)
        cached = dict(readers)
        for rung, (model, drafted_by) in models.items():
            if rung not in readers or (rung is Rung.DEEP and not isinstance(readers[rung], DeepReader)):
                continue  # what a model behind a network says is its own at every asking
            shaped = _model_identity(model, drafted_by, narrative, decoding)
            shape = identity((rung.value, readers[rung].version, str(linked), shaped))
            # Embedded targets record their rounds, which depend on the questions beside; on torch all does.
            alone = linked or (rung is not Rung.SPECULATIVE and model.engine == "onnx")
            keeping = ViewCachePolicy(self.tiers, shape, life_ns, self.time, alone, is_deep=rung is Rung.DEEP)
            cached[rung] = with_cache(readers[rung], keeping)
        return cached

    def wrap_scorer(self, scorer: ItemScorer, reader: CachedTextReader | None) -> ItemScorer:
        """The scorer, telling `reader`, which it asks, whose texts come."""
        return scorer if reader is None else CachedScorer(scorer, reader, self.time)

    def wrap_texts(
        self, reader: TextReader, heads: Heads | None, facts: str, narrative: NarrativeConfig
    ) -> CachedTextReader:
        """A reader of texts behind the cache; `facts` is the version of what reads their facts, '' where none does."""
        life_ns = lifetime_ns(narrative.half_life_ns, MIN_WEIGHT)
        judges = heads.digest if heads is not None else ""
        names = repr(sorted(narrative.symbol_names.items()))
        shape = identity((reader.version, judges, facts, names, code_digest(), machine_digest()))
        num_labels = {} if heads is None else {name: len(one.labels) for name, one in heads.heads.items()}
        return CachedTextReader(reader, num_labels, self.tiers, shape, life_ns)

    def prompt_blocks(self, narrative: NarrativeConfig) -> Callable[[Network], SharedKVBlocks] | None:
        """What gives a network the prompts that were read elsewhere; None where they are not kept."""
        if not self.keeps_prefixes:
            return None
        life_ns = lifetime_ns(narrative.half_life_ns, MIN_WEIGHT)

        def kept(network: Network) -> SharedKVBlocks:
            engine = f"{type(network).__module__}.{type(network).__qualname__}"
            reader = identity((network.digest, engine, code_digest(), machine_digest()))
            return SharedKVBlocks(self.tiers, reader, network.shape, life_ns)

        return kept


def open_cache(
    config: CacheConfig, run_folder: Path | None, report: Callable[[str], None]
) -> RunCache | None:
    """The cache of a run, None where it is switched off. A tier that cannot be used is reported and passed over.

    Raises: InvalidInput, for a URL that is none; MissingExtra.
    """
    if not config.memory_mb:
        return None
    time = EventClock()
    memory = MemoryTier(int(config.memory_mb * MIB), time)
    outer: list[OuterTier] = []
    folder = _cache_folder(config, run_folder)
    if folder is not None and config.folder != "run":
        require_extra("cache.folder", "cluster", "lmdb")
    if folder is not None and is_installed("lmdb"):  # without it a run caches in memory alone
        from htfi.adapters.lmdb.tier import LmdbTier

        outer.append(OuterTier(LmdbTier(folder, int(config.folder_mb * MIB), time, report)))
    if config.redis:
        require_extra("cache.redis", "cluster", "redis")
        from htfi.adapters.redis.tier import RedisAddress, RedisTier

        place = RedisAddress(config.redis, config.redis_timeout_ms, config.redis_prefix, config.redis_ca)
        admits, most = frozenset(config.redis_admits), int(config.redis_max_kb * 1024)
        outer.append(OuterTier(RedisTier(place, report), admits, most))
    return RunCache(TieredCache(memory, outer, config.secret.encode()), time, config.prefixes)


def _cache_folder(config: CacheConfig, run_folder: Path | None) -> Path | None:
    if config.folder == "run":
        return run_folder / CACHE_FOLDER if run_folder is not None else None
    return None if config.folder == "none" else Path(config.folder)


def _model_identity(
    opened: LoadableModel, drafted_by: str, narrative: NarrativeConfig, decoding: DecodingConfig
) -> bytes:
    """All that shapes the views of a folder's model besides the question. `drafted_by` names the draft, if any."""
    trusts = (repr(opened.trust), repr(opened.meaning))
    settings = (repr(narrative), repr(replace(decoding, cache_bytes=0, cache_tokens=0)))
    return identity(
        (
            opened.folder.digest,
            opened.version,
            drafted_by,
            *trusts,
            *settings,
            code_digest(),
            machine_digest(),
        )
    )


@lru_cache(maxsize=1)
def code_digest() -> str:
    """This program's code that reads and writes, as a digest (hex): another version asks and answers otherwise."""
    whole = hashlib.blake2b(__version__.encode(), digest_size=16)
    root = resources.files("htfi")
    for package in ("domain", "narrative", "decoding"):
        for file in _source_files(root / package):
            whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


@lru_cache(maxsize=1)
def machine_digest() -> str:
    """What the last bits of a sum depend on, as a digest (hex): the processor's kind and the engine's version."""
    found = [platform.machine(), metadata.version("onnxruntime"), np.__version__]
    identifying = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        lines = [f"model : {platform.processor()}"]
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in identifying:
            found.append(" ".join(sorted(value.split())))
    return hashlib.blake2b("\n".join(found).encode(), digest_size=16).hexdigest()


def _source_files(folder: Traversable) -> list[Traversable]:
    found: list[Traversable] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += _source_files(entry)
        elif entry.name.endswith((".py", ".so")):
            found.append(entry)
    return found

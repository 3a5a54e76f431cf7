"""Opens the context cache of a run and puts it around its readers, its encoder and its engine. `open_run` asks."""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from htfi import __version__
from htfi.adapters.onnx.written import Precision
from htfi.decoding.config import DecodingConfig
from htfi.decoding.kept_blocks import KeptBlocks
from htfi.decoding.ports import Network
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds
from htfi.narrative.caching.cached_reader import Keeping, behind_cache
from htfi.narrative.caching.encoded import CachedEncoder, CachedScoring, Scoring
from htfi.narrative.caching.event_time import EventTime
from htfi.narrative.caching.keys import identity, lifetime_ns
from htfi.narrative.caching.memory import Memory
from htfi.narrative.caching.sealing import MAX_SECRET_BYTES
from htfi.narrative.caching.tiers import Outer, Tiers
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.deep_reader import DeepReader
from htfi.narrative.encoding.heads import Heads
from htfi.narrative.ports import Reader, TextEncoder
from htfi.wiring.open_folder import OpenFolder

FOLDER = "context"  # in a run's folder
MIB = 2**20


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Where what was worked out from texts is kept: in memory, in a folder of this machine, on a server of several.

    `memory_mb` 0 keeps nothing at all. `folder` 'run' is a folder in the run's own, 'none' none; another name is
    shared by all runs that name it. `redis` is a URL (redis://, rediss://, unix://) and lasts for each look-up at most
    `redis_timeout_ms`; user and password come with it, and are better put into HTFI_CACHE__REDIS. `redis_ca` names the
    file of the authority that its certificate is checked against. Items with residency tags go to it only where
    `redis_admits` holds all their tags, and values of more than `redis_max_kb` never do: to fetch keys and values of a
    small model over a network takes as long as to read again. `secret` seals what lies outside of this process.
    """

    memory_mb: Annotated[float, Meta(ge=0.0, le=65_536.0)] = 16.0
    folder: str = "run"
    folder_mb: Annotated[float, Meta(ge=4.0, le=1_048_576.0)] = 32.0
    redis: str = ""
    redis_prefix: str = "htfi"
    redis_timeout_ms: Annotated[float, Meta(ge=1.0, le=1_000.0)] = 20.0
    redis_ca: str = ""
    redis_admits: tuple[str, ...] = ()
    redis_max_kb: Annotated[float, Meta(ge=0.0, le=524_288.0)] = 32.0
    secret: str = ""
    prefixes: bool = True  # whether keys and values of read prompts are kept beyond the engine

    def __post_init__(self) -> None:
        check_bounds("cache", self)
        if not self.folder:
            raise InvalidInput("cache.folder must be 'run', 'none' or a folder")
        if self.redis and not self.redis.startswith(("redis://", "rediss://", "unix://")):
            raise InvalidInput(
                "cache.redis must be a URL: redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
            )
        if self.redis_ca and not self.redis.startswith("rediss://"):
            raise InvalidInput("cache.redis_ca needs a server behind TLS: cache.redis = rediss://HOST:PORT")
        if len(self.secret.encode()) > MAX_SECRET_BYTES:
            raise InvalidInput(f"cache.secret must have at most {MAX_SECRET_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class OpenCache:
    """A context cache that is open, and the time of events that it follows. `keeps_prefixes` as in the settings."""

    tiers: Tiers
    time: EventTime
    keeps_prefixes: bool = True

    def around(
        self,
        readers: Mapping[Rung, Reader],
        target: OpenFolder,
        draft: OpenFolder,
        narrative: NarrativeConfig,
        decoding: DecodingConfig,
        *,
        linked: bool = False,
    ) -> dict[Rung, Reader]:
        """The readers of a pair behind the cache; of `linked` ones the target writes on another machine."""
        full = replace(target, precision=Precision.FP32.value) if target.engine == "onnx" else target
        models = {
            Rung.EDGE: (draft, ""),
            Rung.SPECULATIVE: (target, draft.version),
            Rung.SECURE: (target, ""),
            Rung.DEEP: (full, ""),
        }
        life_ns = lifetime_ns(narrative.half_life_ns, narrative.min_weight)
        cached = dict(readers)
        for rung, (model, drafted_by) in models.items():
            if rung not in readers or (rung is Rung.DEEP and not isinstance(readers[rung], DeepReader)):
                continue  # what a model behind a network says is its own at every asking
            shaped = _shape(model, drafted_by, narrative, decoding)
            shape = identity((rung.value, readers[rung].version, str(linked), shaped))
            # Embedded targets tell how their rounds went, and that depends on the questions beside; on torch all does.
            alone = linked or (rung is not Rung.SPECULATIVE and model.engine == "onnx")
            keeping = Keeping(self.tiers, shape, life_ns, self.time, alone, deep=rung is Rung.DEEP)
            cached[rung] = behind_cache(readers[rung], keeping)
        return cached

    def scoring(self, scorer: Scoring, encoder: CachedEncoder | None) -> Scoring:
        """The scorer, telling `encoder`, which it asks, whose texts come."""
        return scorer if encoder is None else CachedScoring(scorer, encoder, self.time)

    def encoding(
        self, encoder: TextEncoder, heads: Heads | None, narrative: NarrativeConfig
    ) -> CachedEncoder:
        """The encoder and its heads behind the cache."""
        life_ns = lifetime_ns(narrative.half_life_ns, narrative.min_weight)
        judges = heads.digest if heads is not None else ""
        shape = identity((encoder.version, judges, program(), machine()))
        return CachedEncoder(encoder, heads, self.tiers, shape, life_ns)

    def prefixes(self, narrative: NarrativeConfig) -> Callable[[Network], KeptBlocks] | None:
        """What gives a network the prompts that were read elsewhere; None where they are not kept."""
        if not self.keeps_prefixes:
            return None
        life_ns = lifetime_ns(narrative.half_life_ns, narrative.min_weight)

        def kept(network: Network) -> KeptBlocks:
            engine = f"{type(network).__module__}.{type(network).__qualname__}"
            reader = identity((network.digest, engine, program(), machine()))
            return KeptBlocks(self.tiers, reader, network.shape, life_ns)

        return kept


def open_cache(config: CacheConfig, run_folder: Path | None, tell: Callable[[str], None]) -> OpenCache | None:
    """The cache of a run, None where it is switched off. A tier that cannot be used is told of, and passed over.

    Raises: InvalidInput, for a URL that is none.
    """
    if not config.memory_mb:
        return None
    time = EventTime()
    memory = Memory(int(config.memory_mb * MIB), time)
    outer: list[Outer] = []
    folder = _folder(config, run_folder)
    if folder is not None:
        from htfi.adapters.lmdb.store import LmdbTier

        outer.append(Outer(LmdbTier(folder, int(config.folder_mb * MIB), time, tell)))
    if config.redis:
        from htfi.adapters.redis.store import RedisPlace, RedisTier

        place = RedisPlace(config.redis, config.redis_timeout_ms, config.redis_prefix, config.redis_ca)
        admits, most = frozenset(config.redis_admits), int(config.redis_max_kb * 1024)
        outer.append(Outer(RedisTier(place, tell), admits, most))
    return OpenCache(Tiers(memory, outer, config.secret.encode()), time, config.prefixes)


def _folder(config: CacheConfig, run_folder: Path | None) -> Path | None:
    if config.folder == "run":
        return run_folder / FOLDER if run_folder is not None else None
    return None if config.folder == "none" else Path(config.folder)


def _shape(
    opened: OpenFolder, drafted_by: str, narrative: NarrativeConfig, decoding: DecodingConfig
) -> bytes:
    """All that shapes the views of a folder's model besides the question. `drafted_by` names the draft, if any."""
    trusts = (repr(opened.trust), repr(opened.meaning))
    settings = (repr(narrative), repr(replace(decoding, cache_bytes=0, cache_tokens=0)))
    return identity(
        (opened.folder.digest, opened.version, drafted_by, *trusts, *settings, program(), machine())
    )


@lru_cache(maxsize=1)
def program() -> str:
    """This program's code that reads and writes, as a digest (hex): another version asks and answers otherwise."""
    whole = hashlib.blake2b(__version__.encode(), digest_size=16)
    package = resources.files("htfi")
    for room in ("domain", "narrative", "decoding"):
        for file in _sources(package / room):
            whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


@lru_cache(maxsize=1)
def machine() -> str:
    """What the last bits of a sum depend on, as a digest (hex): the processor's kind and the engine's version."""
    found = [platform.machine(), metadata.version("onnxruntime"), metadata.version("numpy")]
    told = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        lines = [f"model : {platform.processor()}"]
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in told:
            found.append(" ".join(sorted(value.split())))
    return hashlib.blake2b("\n".join(found).encode(), digest_size=16).hexdigest()


def _sources(folder: Traversable) -> list[Traversable]:
    found: list[Traversable] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += _sources(entry)
        elif entry.name.endswith((".py", ".so")):
            found.append(entry)
    return found

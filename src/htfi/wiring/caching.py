"""Opens the context cache of a run and puts it around its readers, its encoder and its engine. `open_run` asks."""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from htfi import __version__
from htfi.decoding.config import DecodingConfig
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.narrative.caching.cached_reader import CachedReader
from htfi.narrative.caching.event_time import EventTime
from htfi.narrative.caching.keys import identity, lifetime_ns
from htfi.narrative.caching.memory import Memory
from htfi.narrative.caching.sealing import MAX_SECRET_BYTES
from htfi.narrative.caching.tiers import Outer, Tiers
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.ports import Reader
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
    `redis_admits` holds all their tags. `secret` seals what lies outside of this process.
    """

    memory_mb: float = 64.0
    folder: str = "run"
    folder_mb: float = 256.0
    redis: str = ""
    redis_prefix: str = "htfi"
    redis_timeout_ms: float = 20.0
    redis_ca: str = ""
    redis_admits: tuple[str, ...] = ()
    secret: str = ""
    prefixes: bool = True  # whether keys and values of read prompts are kept beyond the engine

    def __post_init__(self) -> None:
        if not 0.0 <= self.memory_mb <= 65_536.0:
            raise InvalidInput(f"cache.memory_mb must lie in 0..65536, not {self.memory_mb}")
        if not 4.0 <= self.folder_mb <= 1_048_576.0:
            raise InvalidInput(f"cache.folder_mb must lie in 4..1048576, not {self.folder_mb}")
        if not self.folder:
            raise InvalidInput("cache.folder must be 'run', 'none' or a folder")
        if self.redis and not self.redis.startswith(("redis://", "rediss://", "unix://")):
            raise InvalidInput(
                "cache.redis must be a URL: redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
            )
        if not 1.0 <= self.redis_timeout_ms <= 1_000.0:
            raise InvalidInput(f"cache.redis_timeout_ms must lie in 1..1000, not {self.redis_timeout_ms}")
        if len(self.secret.encode()) > MAX_SECRET_BYTES:
            raise InvalidInput(f"cache.secret must have at most {MAX_SECRET_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class OpenCache:
    """A context cache that is open, and the time of events that it follows."""

    tiers: Tiers
    time: EventTime

    def around(
        self, readers: Mapping[Rung, Reader], shaped_by: Mapping[Rung, bytes], narrative: NarrativeConfig
    ) -> dict[Rung, Reader]:
        """The readers, those whose views are named by `shaped_by` behind the cache."""
        life_ns = lifetime_ns(narrative.half_life_ns, narrative.min_weight)
        return {
            rung: CachedReader(
                reader,
                self.tiers,
                shaped_by[rung],
                life_ns,
                self.time,
                alone=rung is not Rung.SPECULATIVE,
                deep=rung is Rung.DEEP,
            )
            if rung in shaped_by
            else reader
            for rung, reader in readers.items()
        }


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
        outer.append(Outer(RedisTier(place, tell), frozenset(config.redis_admits)))
    return OpenCache(Tiers(memory, outer, config.secret.encode()), time)


def _folder(config: CacheConfig, run_folder: Path | None) -> Path | None:
    if config.folder == "run":
        return run_folder / FOLDER if run_folder is not None else None
    return None if config.folder == "none" else Path(config.folder)


def view_shape(
    opened: OpenFolder, narrative: NarrativeConfig, decoding: DecodingConfig, drafted_by: str = ""
) -> bytes:
    """All that shapes the views of a folder's model besides the question. `drafted_by` names the draft, if any."""
    return identity(
        (
            opened.folder.digest,
            opened.version,
            drafted_by,
            repr(opened.trust),
            repr(opened.meaning),
            repr(narrative),
            repr(decoding),
            program(),
            machine(),
        )
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

"""Settings of language models and of the context cache; `wiring.settings` composes them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import check_bounds, setting
from htfi.narrative.caching.tier import MAX_SECRET_BYTES

ONNX_PRECISIONS = (
    "fp32",
    "int8",
    "int8-wide",
)  # those of `adapters.onnx.session`, which takes longer to load
TORCH_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
CACHE_FOLDER = "context"  # in a run's folder: the context cache


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Which models read the news, and what runs them."""

    target: str = setting("", "folder of the target model; empty uses the shipped one")
    draft: str = setting("", "folder of the draft model; empty uses the shipped one")
    engine: str = setting("onnx", "onnx (embedded) or torch (extra [train], uses a GPU if there is one)")
    precision: str = setting("int8", "precision of the weights: int8, fp32 or, with torch, bf16")
    promoted_drafts: str = setting("", "folder of promoted drafts that a run follows")
    replay_buffer: str = setting("", "folder that collects the target's answers for `htfi models distil`")
    frontier_url: str = setting(
        "", "address of an OpenAI-compatible model that reads in depth (extra [frontier])"
    )
    frontier_model: str = setting("", "name of that model")
    frontier_key: str = setting("OPENAI_API_KEY", "environment variable that holds its key")

    def __post_init__(self) -> None:
        engines = {"onnx": ONNX_PRECISIONS, "torch": tuple(TORCH_PRECISIONS)}
        if self.engine not in engines:
            raise InvalidInput(f"models.engine must be onnx or torch, not '{self.engine}'")
        known = engines[self.engine]
        if self.precision not in known:
            raise InvalidInput(
                f"models.precision must be one of {', '.join(known)} with the engine {self.engine}, "
                f"not '{self.precision}'"
            )


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Where what was computed from texts is cached: in memory, in a folder of this machine, on a server of several."""

    memory_mb: Annotated[float, Meta(ge=0.0, le=65_536.0)] = setting(
        16.0, "memory of the context cache; 0 switches it off", "MB"
    )
    folder: str = setting("run", "run (in the run's folder), none, or a folder shared by runs")
    folder_mb: Annotated[float, Meta(ge=4.0, le=1_048_576.0)] = setting(
        32.0, "maximum size of that folder", "MB"
    )
    redis: str = setting("", "URL of a shared cache; better set as HTFI_CACHE__REDIS (extra [cluster])")
    redis_prefix: str = setting("htfi", "prefix of the keys in the shared cache")
    redis_timeout_ms: Annotated[float, Meta(ge=1.0, le=1_000.0)] = setting(
        20.0, "maximum wait for the shared cache"
    )
    redis_ca: str = setting("", "file of the authority that signed the shared cache's certificate")
    redis_admits: tuple[str, ...] = setting((), "residency tags of data that the shared cache may hold")
    redis_max_kb: Annotated[float, Meta(ge=0.0, le=524_288.0)] = setting(
        32.0, "largest value stored in the shared cache", "kB"
    )
    secret: str = setting("", "key that encrypts what leaves this process")
    prefixes: bool = setting(True, "whether prompts that were read are also cached outside the engine")

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

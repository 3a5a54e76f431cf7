"""A node of several that share a context cache, as a process of its own: it answers questions, and tells what it took.

Commands come as lines of JSON: {"ask": [question, …]}, {"forget": [id, …]}; each is answered with one line.
"""

import json
import sys
from typing import Any

import msgspec

from htfi.domain.decision import Rung
from htfi.narrative.question import Question, item_name
from htfi.wiring.models.caching import open_cache
from htfi.wiring.models.config import CacheConfig, ModelsConfig
from htfi.wiring.models.readers import open_model_pair, open_readers
from htfi.wiring.settings import Settings


def main(url: str) -> None:
    settings = Settings()
    cache = open_cache(CacheConfig(folder="none", redis=url, redis_timeout_ms=1_000.0), None, complain)
    assert cache is not None
    readers = open_readers(ModelsConfig(), settings.narrative, settings.decoding)
    target, draft = open_model_pair(ModelsConfig())
    around = cache.wrap_readers(readers, target, draft, settings.narrative, settings.decoding)
    for line in sys.stdin:
        told: dict[str, Any] = json.loads(line)
        if "forget" in told:
            cache.tiers.forget([item_name(name) for name in told["forget"]])
            answer: dict[str, Any] = {}
        else:
            questions = msgspec.convert(told["ask"], list[Question])
            views = around[Rung.SPECULATIVE].read(questions, 1_000.0)
            spoken = around[Rung.SPECULATIVE].speculation_stats
            answer = {
                "views": [msgspec.json.encode(view).decode() for view in views],
                "passes": 0 if spoken is None else spoken.num_passes,
                "answers": 0 if spoken is None else spoken.num_answers,
            }
        cache.tiers.flush()
        for one in cache.tiers.outer:
            one.tier.drain(5.0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    cache.tiers.close()


def complain(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1])

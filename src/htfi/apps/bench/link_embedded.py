"""Whether the link changed a word: the same requests written in this process. `htfi bench link` asks."""

from collections.abc import Mapping
from pathlib import Path

from htfi.apps.bench.link_figures import AtRtt
from htfi.apps.bench.link_runs import Bench
from htfi.decoding.config import DecodingConfig
from htfi.domain.writing import Writing
from htfi.wiring.models import ModelsConfig, open_pair
from htfi.wiring.speculation import speculative_author


def num_unlike_embedded(bench: Bench, target: Path, by_rtt: Mapping[float, AtRtt]) -> tuple[int, int]:
    """Answers whose tokens are not the embedded run's, and all answers."""
    of, draft = open_pair(ModelsConfig(str(target)))
    author = speculative_author(of, draft, DecodingConfig())
    unlike = whole = 0
    for kinds in by_rtt.values():
        for run in (run for runs in kinds.values() for run in runs):
            name = next(iter(run.values())).request
            (answer,) = author.write([bench.asked[name]])
            tokens = answer.tokens if isinstance(answer, Writing) else ()
            whole += len(run)
            unlike += sum(one.tokens != tokens for one in run.values())
    return unlike, whole

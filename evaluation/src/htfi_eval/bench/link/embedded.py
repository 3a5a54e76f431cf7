"""Whether the link changed a word: the same requests written in this process. `htfi bench link` asks."""

from collections.abc import Mapping
from pathlib import Path

from htfi.decoding.config import DecodingConfig
from htfi.domain.generation import Completion
from htfi.wiring.models.readers import ModelsConfig, open_model_pair
from htfi.wiring.models.speculation import speculative_author
from htfi_eval.bench.link.figures import RunsByKind
from htfi_eval.bench.link.runs import LinkBench


def num_unlike_embedded(
    bench: LinkBench, target: Path, by_rtt: Mapping[float, RunsByKind]
) -> tuple[int, int]:
    """Answers whose tokens are not the embedded run's, and all answers."""
    of, draft = open_model_pair(ModelsConfig(str(target)))
    author = speculative_author(of, draft, DecodingConfig())
    unlike = whole = 0
    for kinds in by_rtt.values():
        for run in (run for runs in kinds.values() for run in runs):
            name = next(iter(run.values())).request
            (answer,) = author.write([bench.asked[name]])
            tokens = answer.tokens if isinstance(answer, Completion) else ()
            whole += len(run)
            unlike += sum(one.tokens != tokens for one in run.values())
    return unlike, whole

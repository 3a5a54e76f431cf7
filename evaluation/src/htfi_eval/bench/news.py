"""`htfi bench narrative`: from a raw item of news to one that is sanitised, encoded, scored and linked."""

import math
from pathlib import Path
from statistics import median
from typing import Any

import click

from htfi.apps.display.figures import report
from htfi.domain.errors import DependencyUnavailable
from htfi.wiring.encoder import install_hint, open_encoder
from htfi.wiring.settings import Settings
from htfi_eval.bench.news_memory import MemoryProfile, profile_run
from htfi_eval.bench.news_texts import load_news_texts
from htfi_eval.bench.news_timing import (
    BATCH,
    ITEMS,
    NUM_ITEMS_PER_RUN,
    STAGE_ITEMS,
    Embed,
    ThroughputRun,
    measure,
    num_tokens,
    open_peer,
    stages_us,
)

SEED = 7
STAGED = Path("../shared/data")


@click.command("narrative", short_help="Raw news to scored and linked, one by one and in batches.")
@click.option("--runs", "num_runs", default=5, show_default=True, type=click.IntRange(1))
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=STAGED,
    show_default=True,
    help="Folder of staged data; without it headlines of the simulated market are read.",
)
@click.option(
    "--memory-items",
    default=100_000,
    show_default=True,
    type=click.IntRange(0),
    help="Items of the run whose memory is watched; 0: none.",
)
@click.option("--seed", default=SEED, show_default=True)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
def command(num_runs: int, data: Path, memory_items: int, seed: int, json_file: Path | None) -> None:
    """Time the news desk on items that it has not seen: one by one and in batches on one core, in batches on all.

    An item is a headline and its lead: both are sanitised and linked, the encoder reads the headline, or the lead as
    well where the headline has fewer than five words. A hit is the whole call for an item that was read before. The
    peer is the same model in transformers, float32, which only encodes headlines.

    Then a whole run over many items, with hourly prices and a calendar, is watched in a process of its own: how much
    memory it takes as it goes, and at most. This takes minutes; --memory-items 0 leaves it out.

    \b
    Examples:
      htfi bench narrative
      htfi bench narrative --memory-items 10000
      htfi bench narrative --runs 9 --json build/goals/narrative.json
    """
    settings = Settings()
    encoder = open_encoder(settings.encoding)
    if encoder is None:
        raise DependencyUnavailable(install_hint())
    found = load_news_texts(data, num_runs * NUM_ITEMS_PER_RUN + STAGE_ITEMS, seed)
    peer, no_peer = _peer()
    spare, pairs = found.pairs[:STAGE_ITEMS], found.pairs[STAGE_ITEMS:]
    encoder.read([headline for headline, _ in spare])
    runs = [
        measure(settings, pairs[at * NUM_ITEMS_PER_RUN : (at + 1) * NUM_ITEMS_PER_RUN], encoder, peer)
        for at in range(num_runs)
    ]
    stages = [stages_us(settings, pairs[at * NUM_ITEMS_PER_RUN :], encoder) for at in range(num_runs)]
    rows = _rows(runs) + [
        {"what": f"stage: {name}", "µs an item": median(stage[name] for stage in stages)}
        for name in stages[0]
    ]
    notes = [
        f"items: {found.source}; {ITEMS} one by one and twice {BATCH} in batches a run, each once; "
        f"{num_tokens(encoder, spare):.1f} tokens an item; medians of {num_runs} runs",
        *([no_peer] if no_peer else []),
    ]
    metrics = {
        "item_p50_ms": median(run.item_p50_ms for run in runs),
        "item_p99_ms": median(run.item_p99_ms for run in runs),
        "batch_items_per_s": median(run.all_cores_items_per_s for run in runs),
        "cache_hit_us": median(run.cache_hit_us for run in runs),
    }
    if memory_items:
        watched = profile_run(load_news_texts(data, memory_items, seed), memory_items, seed)
        metrics["run_memory_mb"] = watched.peak_mb
        rows += _memory_rows(watched)
    report("narrative", metrics, rows, seed=seed, json_file=json_file, notes=notes)


def _peer() -> tuple[Embed | None, str]:
    try:
        return open_peer(), ""
    except ImportError as error:
        return None, f"no peer: {error.name} is not installed"


def _rows(runs: list[ThroughputRun]) -> list[dict[str, Any]]:
    def of(name: str) -> float:
        return median(getattr(run, name) for run in runs)

    rows: list[dict[str, Any]] = [
        {"what": "one by one, one core", "p50 ms": of("item_p50_ms"), "p99 ms": of("item_p99_ms")},
        {"what": "in batches, one core", "items/s": of("one_core_items_per_s")},
        {"what": "in batches, all cores", "items/s": of("all_cores_items_per_s")},
        {"what": "read before, in process", "µs an item": of("cache_hit_us")},
    ]
    if not math.isnan(runs[0].peer_ms):
        rows += [
            {"what": "transformers fp32, encoding alone, one core", "p50 ms": of("peer_ms")},
            {
                "what": "transformers fp32, encoding alone, in batches, one core",
                "items/s": of("peer_batch_items_per_s"),
            },
        ]
    return rows


def _memory_rows(watched: MemoryProfile) -> list[dict[str, Any]]:
    on_its_way = [
        {
            "what": f"a run, {one.num_events:,} events",
            "resident MB": one.resident_mb,
            "state MB": one.state_mb,
        }
        for one in watched.samples
    ]
    return [
        *on_its_way,
        {"what": f"a run of {watched.num_items:,} items, at most", "resident MB": watched.peak_mb},
    ]

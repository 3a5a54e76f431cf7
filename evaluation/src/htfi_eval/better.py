"""Which way each metric of a benchmark is better: the one table that comparisons with earlier figures go by."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Better(StrEnum):
    """The side on which a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"


_BETTER_BY_BENCH: Mapping[str, Mapping[Better, tuple[str, ...]]] = {
    "ticks": {
        Better.LOWER: (
            "event_p50_us", "event_p99_us", "replay_peak_mb", "bar_to_release_p99_ms", "bar_to_release_1000_p99_ms",
            "entry_bytes", "disk_bytes_per_decision", "first_decision_s", "sample_run_s",
        ),
        Better.HIGHER: ("batch_events_per_s",),
    },
    "ledger": {
        Better.LOWER: ("verify_100k_s", "json_verify_100k_s"),
        Better.HIGHER: ("appends_per_s", "json_appends_per_s"),
    },
    "library": {
        Better.LOWER: ("import_s", "first_forecast_s", "install_mb", "lines_to_first_forecast"),
        Better.HIGHER: ("backtest_forecasts_per_s", "backtest_vs_arch", "backtest_vs_arch_by_bar"),
    },
    "execution": {
        Better.LOWER: (
            "gate_p50_us", "gate_p99_us", "gate_escapes", "gate_over_refusals", "tick_to_order_p99_ms",
            "cancel_1000_ms", "fix_cancel_1000_ms", "fix_share_p50_us", "fix_share_p99_us", "fix_roundtrip_p50_us",
            "fix_roundtrip_quickfix_p50_us", "fix_share_vs_simplefix",
        ),
        Better.HIGHER: ("orders_per_s", "venue_events_per_s", "venue_vs_nautilus"),
    },
    "service": {
        Better.LOWER: (
            "forecast_p99_ms", "forecast_p99_bare_ms", "stream_lag_p99_ms", "start_s", "page_kb",
            "quiet_tenant_p99_ratio", "chat_overhead_ms",
        ),
        Better.HIGHER: ("bus_publish_per_s", "bus_publish_ratio", "bus_read_per_s", "bus_read_ratio"),
    },
    "engine": {
        Better.LOWER: (
            "decode_vs_transformers", "verify8_vs_transformers", "verify16x8_vs_transformers", "decode_vs_floor",
        ),
        Better.HIGHER: ("int8_top1_agreement",),
    },
    "decode": {
        Better.HIGHER: (
            "spec_vs_plain_mini", "spec_vs_plain_200m", "worst_class_vs_plain", "ssd_vs_spec", "ssd_hit_vs_classic",
            "spec_vs_hf_assisted",
        ),
    },
    "paths": {
        Better.LOWER: ("target_passes_h24", "target_passes_h64"),
        Better.HIGHER: ("wall_vs_plain_n16", "wall_vs_plain_n100"),
    },
    "link": {
        Better.LOWER: (
            "planner_regret_steady", "planner_regret_stepping", "unfairness_p95", "detect_loss_ms", "lost_requests",
            "overhead_bytes_per_round",
        ),
        Better.HIGHER: ("inflight_vs_lockstep", "scale_32_edges"),
    },
    "narrative": {
        Better.LOWER: (
            "item_p50_ms", "item_p99_ms", "item_all_cores_p50_ms", "item_all_cores_p99_ms", "cache_hit_us",
            "run_memory_mb", "run_memory_together_mb",
        ),
        Better.HIGHER: ("batch_items_per_s", "batch_in_processes_items_per_s"),
    },
    "reading": {
        Better.LOWER: (
            "run_cost_ratio", "run_cost_processor_ratio", "wire_cost_ratio", "headline_to_release_p50_ms",
            "headline_to_release_p99_ms", "headline_to_target_p50_ms", "headline_to_target_p99_ms",
        ),
    },
    "headlines": {
        Better.LOWER: (
            "headline_to_release_p50_ms", "headline_to_release_p99_ms", "headline_to_target_p50_ms",
            "headline_to_target_p99_ms",
        ),
    },
    "governance": {
        Better.LOWER: (
            "stop_local_p50_ms", "stop_local_p99_ms", "stop_cluster_p50_ms", "stop_cluster_p99_ms",
            "request_local_p50_ms", "request_local_p99_ms", "request_cluster_p50_ms", "request_cluster_p99_ms",
            "trip_local_p50_ms", "trip_local_p99_ms", "trip_cluster_p50_ms", "trip_cluster_p99_ms",
            "checks_us_per_decision", "breakers_us_per_decision", "bundle_activation_s",
        ),
    },
    "buffering": {
        Better.LOWER: (
            "wrong_matches", "readings_ahead", "preparation_ms", "item_to_view_ms", "item_to_view_buffered_ms",
            "headlines_wrong", "statements_wrong",
        ),
        Better.HIGHER: (
            "hits", "confirmed", "confirmed_to_the_figure", "saved_ms", "times_as_fast", "headlines_hits",
            "statements_hits",
        ),
    },
}  # fmt: skip

BETTER: Mapping[str, Mapping[str, Better]] = {
    bench: {metric: side for side, metrics in by_side.items() for metric in metrics}
    for bench, by_side in _BETTER_BY_BENCH.items()
}


def unlisted_metrics(bench: str, metrics: Iterable[str]) -> list[str]:
    """Those of a benchmark whose better side the table does not say."""
    known = BETTER.get(bench, {})
    return [metric for metric in metrics if metric not in known]

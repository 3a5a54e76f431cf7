"""The texts that every entry of version 2 knows: a place below their number refers to one of them (`plain.TextPlaces`).

Once a ledger has entries of this version the list stays as it is; another list is another version.
"""

WORDS = (
    # components, in `models`
    "htfi", "policy", "rationale", "readings", "fidelity", "triggers", "drafts", "encoder", "facts", "calendar",
    "reader.template", "reader.edge", "reader.speculative", "reader.secure", "reader.deep", "reader.frontier",
    "fused", "narrator",
    # experts
    "ewma", "historical_simulation", "log_range_har", "market_har", "random_walk", "garch", "order_flow", "foundation",
    # their versions, and those of rules and words
    "0.1.0", "policy/2", "templates/5", "readings/3", "fidelity/3", "triggers/1", "template-reader/1",
    # features
    "range_last", "range_vol", "return_last", "ewma_vol", "vol_ratio", "return_sigmas", "volume_ratio", "spread_ratio",
    "spread", "imbalance", "realised_vol",
    # news
    "prices", "news", "no_line", "edge", "target", "encoder suffices", "about others", "neither good nor bad",
    "not understood well enough", "not about markets", "reports an old move", "as expected", "did", "will", "may",
    "denies", "rumour", "fact", "expected", "recap", "subject", "object", "acquirer", "facts/2",
)  # fmt: skip

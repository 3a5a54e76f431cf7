"""The texts that entries know: a place below their number refers to one of them (`plain.TextPlaces`).

Once a ledger has entries of a version its list stays as it is; another list is another version.
"""

WORDS_2 = (
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
WORDS_3 = (
    *WORDS_2,
    "templates/6", "effects/2", "garch_t", "gjr_t", "har", "seasonal", "known_variance", "swaps", "mark",
    # features
    "rv_1s", "bv_1s", "rv_10s", "bv_10s", "rv_60s", "bv_60s", "rv_300s", "bv_300s", "jump_z", "spread_bps",
    "microprice_gap_bps", "ofi_bar",
    # news
    "headlines", "central_bank", "rate_decision", "asset_purchases", "policy_guidance", "unmoved",
)  # fmt: skip
WORDS_4 = (*WORDS_3, "templates/7")
WORDS = {2: WORDS_2, 3: WORDS_3, 4: WORDS_4}  # by the version of entries
VERSION = max(WORDS)

"""Names among a decision's models that say how its readings came about, for who writes and who judges entries."""

NOISE_KEY = "mark"  # the id of the marking key that its readings' noise follows from
PROMOTED_DRAFTS_KEY = "drafts"  # where drafts are promoted while it runs: any may have guessed

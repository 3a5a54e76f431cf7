"""The models that ship: htfi-mini in two sizes, the encoder of news and its heads, each held to its digest."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"
HEADS = Path(__file__).parent / "heads"
FACTS = Path(__file__).parent / "facts"
FACTS_SOURCE = "htfi_facts"  # the encoder, tuned for facts
ENCODER_GRAPH = "encoder.graph"

FACT_HEADS_DIGEST = "322838d9fb21d0db07a5fa3f9baf57cb7a30447a25bc7a63d12f3f7ca123f5d2"
# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {
    TARGET: "d7d586dafc640338545c88ddc57156cc8783776e349445a2501c8ee863cd759e",
    DRAFT: "48d2d06d8abf45e3ba714300c3207600b9fc80ddccb8992b555adcd2b242b630",
    FACTS: "21830162e0a65d1e225f82425a420bc41586f123ed0d9b8e7013890b834f090f",
    HEADS: "5d95cbf1215d7dad9f89c97c9f1305cf1f90c0a7d260303b64d6cbec2c2e9443",
}

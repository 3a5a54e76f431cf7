"""The models that ship: htfi-mini in two sizes, the encoder of news and its heads, each held to its digest."""

from pathlib import Path

TARGET = Path(__file__).parent / "mini-target"
DRAFT = Path(__file__).parent / "mini-draft"
# What ledgers of earlier versions were read with, for their replay.
EARLIER = tuple(Path(__file__).parent / "earlier" / name for name in ("mini-target", "mini-draft"))
HEADS = Path(__file__).parent / "heads"
FACTS = Path(__file__).parent / "facts"
FACTS_SOURCE = "htfi_facts"  # the encoder, tuned for facts
ENCODER_GRAPH = "encoder.graph"

FACT_HEADS_DIGEST = "c8165dc8e744a1c14d90b2558278e31a16c95e011710b471899052387eed54be"
# SHA-256 over configuration, weights and vocabulary: a changed byte is refused.
DIGESTS: dict[Path, str] = {
    TARGET: "5815f3c3b5a6709e17713a4a6a1b7311dea3364b38ad0057cd11c200ee545834",
    DRAFT: "1c2e4cac2f8aa8167ccc4f3234152f9148614da93bbf31d960ea96dd5f17e8a7",
    EARLIER[0]: "d7d586dafc640338545c88ddc57156cc8783776e349445a2501c8ee863cd759e",
    EARLIER[1]: "48d2d06d8abf45e3ba714300c3207600b9fc80ddccb8992b555adcd2b242b630",
    FACTS: "4c1d0efc71820e2c0c737aa009cfc37c21df32bdd4aec980817be090d13c4d19",
    HEADS: "8254628e5ff270784f7d3c49b88a50aa14bbb04e13327018ed062dd8483b5181",
}

"""What was compiled of heads, links and novelty.

None each where there was no C compiler, and numpy and patterns do the same.
"""

try:
    from htfi.narrative.encoding import cues_core as cues
    from htfi.narrative.encoding import heads_core as heads
    from htfi.narrative.encoding import linking_core as linking
    from htfi.narrative.encoding import novelty_core as novelty
    from htfi.narrative.encoding import products_core as products
except ImportError:
    cues = heads = linking = novelty = products = None

__all__ = ["cues", "heads", "linking", "novelty", "products"]

"""What was compiled of heads and links; None each where there was no C compiler, and numpy and patterns do the same."""

try:
    from htfi.narrative.encoding import cues_core as cues
    from htfi.narrative.encoding import heads_core as heads
    from htfi.narrative.encoding import linking_core as linking
    from htfi.narrative.encoding import products_core as products
except ImportError:
    cues = heads = linking = products = None

__all__ = ["cues", "heads", "linking", "products"]

"""What was compiled of the encoder's heads, `cues`; None where there was no C compiler, and numpy does the same."""

try:
    from htfi.narrative.encoding import cues_core as cues
except ImportError:
    cues = None

__all__ = ["cues"]

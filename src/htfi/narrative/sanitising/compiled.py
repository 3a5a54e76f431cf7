"""What was compiled of screening; None each where there was no C compiler, and the modules that call it do the same."""

try:
    from htfi.narrative.sanitising import disguise_core as disguise
    from htfi.narrative.sanitising import similarity_core as similarity
    from htfi.narrative.sanitising import wording_core as wording
except ImportError:
    disguise = similarity = wording = None

__all__ = ["disguise", "similarity", "wording"]

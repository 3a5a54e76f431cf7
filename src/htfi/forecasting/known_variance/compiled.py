"""What was compiled of the hours of bars, `core`; None where there was no C compiler, and numpy does the same."""

try:
    from htfi.forecasting.known_variance import hours_core as core
except ImportError:
    core = None

__all__ = ["core"]

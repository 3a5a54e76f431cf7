"""What was compiled of learning, `core`; None where there was no C compiler, and numpy does the same."""

try:
    from htfi.forecasting import learning_core as core
except ImportError:
    core = None

__all__ = ["core"]

"""HTFI: real-time probabilistic forecasts of prices and news, each recorded before it is released."""

__version__ = "0.1.0"

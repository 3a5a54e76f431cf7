"""`htfi report`: one self-contained HTML page from the folder that a run leaves behind."""

from htfi.apps.cli.report.command import command

__all__ = ["command"]

"""Reads the kernel's small files below a root folder, where they may be missing at any time. `vitals` asks."""

from pathlib import Path

_MOST_BYTES = 4096
_MOST_NAMES = 64


class Files:
    """Paths are relative to the root. What cannot be read is None or nothing, never an error."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def text(self, path: str) -> str | None:
        try:
            with (self._root / path).open("rb") as file:
                return file.read(_MOST_BYTES).decode("ascii", "replace")
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> float | None:
        text = self.text(path)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            return None
        return value if abs(value) < float("inf") else None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in (self._root / folder).iterdir())[:_MOST_NAMES]
        except OSError:
            return []

    def named(self, folder: str, prefix: str) -> list[str]:
        """Paths of what lies in a folder and begins so."""
        return [f"{folder}/{name}" for name in self.names(folder) if name.startswith(prefix)]

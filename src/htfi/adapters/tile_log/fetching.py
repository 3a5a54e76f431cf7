"""Reads a log's checkpoint and tiles over HTTP (c2sp.org/tlog-tiles), by httpx (extra `[client]`)."""

from types import TracebackType
from typing import Self

import httpx

from htfi.domain.errors import AccessDenied, DependencyUnavailable, InvalidInput

_MAX_BYTES = 32 << 20  # the largest bundle is 16.8 MB: 256 entries of 64 KiB
_TIMEOUT_S = 10.0


class TileServer:
    """One log's address. Close it after use."""

    def __init__(self, url: str, key: str = "") -> None:
        """`key` goes with every request as a bearer's. Raises: InvalidInput."""
        found = httpx.URL(url)
        if found.scheme not in ("http", "https") or not found.host:
            raise InvalidInput(f"{url[:200]} is no address of a log: write http://HOST:PORT or https://HOST")
        self.url = str(found).rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(
            timeout=_TIMEOUT_S, headers=headers, follow_redirects=False, trust_env=False
        )

    def fetch(self, path: str) -> bytes | None:
        """What stands at a path; None where nothing does. Raises: DependencyUnavailable, AccessDenied."""
        parts: list[bytes] = []
        num = 0
        try:
            with self._client.stream("GET", f"{self.url}/{path}") as answer:
                if answer.status_code in (404, 410):
                    return None
                if answer.status_code in (401, 403):
                    raise AccessDenied(
                        f"{self.url}/{path}: {answer.status_code}: give a key that may read it"
                    )
                if answer.status_code != 200:
                    raise DependencyUnavailable(f"{self.url}/{path}: answered {answer.status_code}")
                for part in answer.iter_bytes():
                    num += len(part)
                    if num > _MAX_BYTES:
                        raise DependencyUnavailable(f"{self.url}/{path}: is larger than any tile")
                    parts.append(part)
        except httpx.HTTPError as error:
            raise DependencyUnavailable(f"{self.url}/{path}: {error or type(error).__name__}") from error
        return b"".join(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

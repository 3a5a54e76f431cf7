"""A headless Chromium over its devtools protocol: opens a page at any width, measures it, takes its picture.

with Chromium(folder) as browser:
    browser.open(page, width=420)
    assert browser.run("document.documentElement.scrollWidth") <= 420
"""

import base64
import json
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import connect

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), "")
_MARGIN = 16  # px around what a picture shows
_START_S, _REPLY_S, _SETTLE_S = 30.0, 60.0, 30.0
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-extensions",
    "--disable-background-networking", "--no-first-run", "--force-color-profile=srgb", "--remote-debugging-port=0",
)  # fmt: skip


class Chromium:
    """One browser with one tab; `folder` holds its profile. `errors` are the exceptions that pages have thrown.

    `shown` is what was opened last, and how wide.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._num_sent = 0
        self.errors: list[str] = []
        self.shown: tuple[Path | str, int] | None = None

    def __enter__(self) -> Self:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={self._folder}", "about:blank"]
        with ExitStack() as closing:
            self._process = closing.enter_context(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            closing.callback(self._process.terminate)
            self._socket = closing.enter_context(
                connect(self._tab_url(), max_size=None, open_timeout=_START_S, proxy=None)
            )
            self._ask("Page.enable")
            self._ask("Runtime.enable")
            self._closing = closing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def open(
        self, page: Path | str, width: int, height: int = 900, *, dark: bool = False, scale: float = 1.0
    ) -> None:
        """Load a file, or an address, at a window of so many CSS pixels; returns when it is drawn."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
        )  # fmt: skip
        self._ask("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        deadline_s = time.monotonic() + _SETTLE_S
        while self.run("document.readyState") != "complete" or self.run("location.href") == "about:blank":
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{page} does not finish loading")
            time.sleep(0.05)
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 150)))")
        self.shown = (page, width)

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        reply = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{script}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until an expression in the page is true."""
        deadline_s = time.monotonic() + _SETTLE_S
        while not self.run(condition):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"the page does not come to: {condition}")
            time.sleep(0.02)

    def picture(self, file: Path, first: str = "", last: str = "") -> None:
        """PNG of the window, or of the page's whole width from what selector `first` finds to what `last` does."""
        how: dict[str, Any] = {}
        if first:
            script = f"""(() => {{ const box = (of) => document.querySelector(of).getBoundingClientRect();
              return [box({json.dumps(first)}).top, box({json.dumps(last or first)}).bottom].map((y) => y + scrollY);
            }})()"""
            top, bottom = self.run(script)
            top, width = max(0.0, top - _MARGIN), self.run("innerWidth")
            clip = {"x": 0, "y": top, "width": width, "height": bottom + _MARGIN - top, "scale": 1}
            how = {"clip": clip, "captureBeyondViewport": True}
        reply = self._ask("Page.captureScreenshot", format="png", **how)
        file.write_bytes(base64.b64decode(reply["data"]))

    def _tab_url(self) -> str:
        from urllib.request import ProxyHandler, build_opener

        port_file, deadline_s = self._folder / "DevToolsActivePort", time.monotonic() + _START_S
        while not (port_file.exists() and port_file.read_text().count("\n")):
            if time.monotonic() > deadline_s or self._process.poll() is not None:
                raise RuntimeError("Chromium does not start")
            time.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        with build_opener(ProxyHandler({})).open(
            f"http://127.0.0.1:{port}/json/list", timeout=_START_S
        ) as reply:
            tabs = json.loads(reply.read())
        return next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._num_sent += 1
        self._socket.send(json.dumps({"id": self._num_sent, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self._socket.recv(_REPLY_S))
            if reply.get("method") == "Runtime.exceptionThrown":
                details = reply["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            if reply.get("id") == self._num_sent:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

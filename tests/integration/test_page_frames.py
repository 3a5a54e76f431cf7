"""How smoothly the page draws while 200 decisions a second come: the times between its frames, in a real Chromium."""

import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

import htfi
from chromium import CHROMIUM
from page_browser import browsers, page_of
from page_run import daily_bars
from service_process import ServiceProcess

RATE_PER_S, SECONDS = 200, 10
SYMBOLS = ("S0", "S1", "S2", "S3")
MEASURE = """async (ms) => {
  const long = [];
  const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)));
  watch.observe({type: 'longtask'});
  const first = Number(document.querySelector('.decisions a').textContent);
  const frames = await new Promise((done) => {
    const times = [];
    const next = (now) => {
      times.push(now);
      if (now - times[0] < ms) requestAnimationFrame(next); else done(times);
    };
    requestAnimationFrame(next);
  });
  watch.disconnect();
  const num = Number(document.querySelector('.decisions a').textContent) - first;
  return {frames: frames.slice(1).map((one, k) => one - frames[k]), long, num};
}"""


def feed(folder: Path, bars: list[dict[str, object]], is_over: threading.Event) -> None:
    """So many bars a second, a decision each, a day of all symbols at once."""
    with htfi.open_run(folder, interval="1d", models=None) as run:
        begin = time.monotonic()
        for place in range(0, len(bars), len(SYMBOLS)):
            if is_over.wait(max(begin + place / RATE_PER_S - time.monotonic(), 0.0)):
                return
            list(run.feed(bars[place : place + len(SYMBOLS)]))


@pytest.mark.slow
@pytest.mark.serial
def test_page_draws_each_frame_while_decisions_come(tmp_path: Path) -> None:
    assert CHROMIUM, "install chromium: the page is tested in a real browser"
    days = RATE_PER_S * (SECONDS + 5) // len(SYMBOLS)
    folder, is_over = tmp_path / "run", threading.Event()
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed(daily_bars(0, 40, SYMBOLS)))
    feeder = threading.Thread(target=feed, args=(folder, daily_bars(40, 40 + days, SYMBOLS), is_over))
    with (
        ServiceProcess("--follow", str(folder)) as service,
        browsers() as browser,
        page_of(browser, f"{service.url}/") as watched,
    ):
        expect(watched.page.locator(".decisions li").first).to_be_visible()
        feeder.start()
        watched.page.wait_for_timeout(1_500)
        found = watched.page.evaluate(MEASURE, 1_000 * SECONDS)
        is_over.set()
        feeder.join()
    frames = sorted(found["frames"])
    p50, p99 = frames[len(frames) // 2], frames[99 * len(frames) // 100]
    print(  # noqa: T201
        f"{found['num'] / SECONDS:.0f} decisions a second: {len(frames) / SECONDS:.1f} frames a second, "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {frames[-1]:.1f} ms; {len(found['long'])} long tasks"
    )
    assert found["num"] > 0.8 * RATE_PER_S * SECONDS
    assert p50 < 18
    assert p99 < 34

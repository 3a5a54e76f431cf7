"""Pictures of the page, made small, and how far two are apart. The browser works it out: no image library is needed."""

import base64
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page

PICTURES = Path(__file__).parent / "data" / "page"
WIDTH = 200  # px
TEXT = "Prices inside 0123456789"
TEXT_WIDTH_PX = 180.9  # of TEXT in 14 px of the page's font, where the pictures were made
_SMALL = """async ([content, width]) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + content;
  await image.decode();
  const canvas = new OffscreenCanvas(width, Math.round(width * image.height / image.width));
  const context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return btoa(String.fromCharCode(...blob));
}"""
_COMPARE = """async (contents) => {
  const [one, other] = await Promise.all(contents.map(async (content) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + content;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  }));
  if (one.width !== other.width || one.height !== other.height) return [255, 1];
  let sum = 0, far = 0;
  for (let k = 0; k < one.data.length; k += 4) {
    const apart = Math.max(...[0, 1, 2].map((c) => Math.abs(one.data[k + c] - other.data[k + c])));
    sum += apart;
    far += apart > 40 ? 1 : 0;
  }
  return [4 * sum / one.data.length, 4 * far / one.data.length];
}"""


class Apart(NamedTuple):
    """Between two pictures: the mean distance of their pixels (0 to 255), the share that is over 40 apart."""

    mean: float
    far: float


def has_our_fonts(page: Page) -> bool:
    """Whether text is as wide as where the pictures were made; else they cannot be compared."""
    found = page.evaluate(
        """(text) => { const context = document.createElement('canvas').getContext('2d');
        context.font = '14px ' + getComputedStyle(document.body).fontFamily;
        return context.measureText(text).width; }""",
        TEXT,
    )
    return abs(found - TEXT_WIDTH_PX) < 1


def small_picture(page: Page, blank: Page) -> bytes:
    """PNG of the window, WIDTH pixels wide; `blank` is a tab without a content security policy."""
    shown = base64.b64encode(page.screenshot(animations="disabled", caret="hide")).decode()
    return base64.b64decode(blank.evaluate(_SMALL, [shown, WIDTH]))


def apart(one: bytes, other: bytes, blank: Page) -> Apart:
    contents = [base64.b64encode(content).decode() for content in (one, other)]
    return Apart(*blank.evaluate(_COMPARE, contents))

"""Pictures of the pages in the docs: `python -m integrations_tests.web.screenshots` renews them."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from commonplace import Memory

from .browser import addresses, fill, log_in, serving, started_browser

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "pages"
WIDTH, MOST = 900, 1150
COLOURS = 256  # less than half the bytes, and nothing that one sees
VIEWS = (
    "why", "people", "person", "records", "conversation", "record", "about", "graph", "forget",
    "rights", "operation",
)  # fmt: skip


def main() -> None:
    """Take a picture of each view of a small memory, with the default embedder."""
    FOLDER.mkdir(exist_ok=True)
    size = {"width": WIDTH, "height": 300}
    with tempfile.TemporaryDirectory() as place, Memory.open(place) as memory:
        fill(memory)
        with started_browser() as browser, serving(memory) as site:
            login = log_in(browser, site)
            with browser.new_context(storage_state=login, viewport=size) as context:
                page = context.new_page()
                for name in VIEWS:
                    page.goto(f"{site}/{addresses(memory)[name]}")
                    height = min(page.evaluate("document.documentElement.scrollHeight"), MOST)
                    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
                    taken = page.screenshot(full_page=True, clip=clip)
                    picture = Image.open(io.BytesIO(taken)).convert("RGB")
                    picture = picture.quantize(COLOURS, dither=Image.Dither.NONE)
                    picture.save(FOLDER / f"{name}.png", optimize=True)
                    sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()

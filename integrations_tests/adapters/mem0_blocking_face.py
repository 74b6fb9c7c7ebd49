"""Make `commonplace_mem0/memory.py`, the blocking face, from the awaited one beside it.

    python integrations_tests/adapters/mem0_blocking_face.py

A test tells when that was forgotten.
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "adapters" / "commonplace_mem0"
SOURCE, TARGET = PACKAGE / "async_memory.py", PACKAGE / "memory.py"
CHANGES = (
    (r"class `AsyncMemory`", "class `Memory`"),
    (r"`memory\.py` is made from this file: change this one\.",
     "Made from `async_memory.py` by `integrations_tests/adapters/mem0_blocking_face.py`."),
    (r"AsyncMem0Memory", "Mem0Memory"),
    (r"AwaitedBase", "BlockingBase"),
    (r"every call is awaited\.", "blocks until each call is done."),
    (r"async def ", "def "),
    (r"await ", ""),
)  # fmt: skip


def blocking(source: str) -> str:
    """Write the source of the awaited class as that of the blocking one."""
    for pattern, text in CHANGES:
        source = re.sub(pattern, text, source)
    return source


if __name__ == "__main__":
    TARGET.write_text(blocking(SOURCE.read_text("utf-8")), "utf-8")

"""Make `commonplace_mem0/async_memory.py`, the awaited face, from the blocking one beside it.

    python integrations_tests/adapters/mem0_awaited_face.py

Of each method's docstring it has the first line. A test tells when that was forgotten.
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "adapters" / "commonplace_mem0"
SOURCE, TARGET = PACKAGE / "memory.py", PACKAGE / "async_memory.py"
CHANGES = (
    (r"class `Memory`", "class `AsyncMemory`"),
    (r"`async_memory\.py` is made from this file: change this one\.",
     "Made from `memory.py` by `integrations_tests/adapters/mem0_awaited_face.py`."),
    (r"Mem0Memory", "AsyncMem0Memory"),
    (r"BlockingBase", "AwaitedBase"),
    (r"blocks until each call is done\.\n.*?\"\"\"",
     'every call is awaited, as of `Memory`."""'),
    (r"    def ", "    async def "),
    (r"self\._run\(", "await self._run("),
    (r'(        """[^\n]*[^"\n])\n.*?"""', r'\1"""'),
)  # fmt: skip


def awaited(source: str) -> str:
    """Write the source of the blocking class as that of the awaited one."""
    for pattern, text in CHANGES:
        source = re.sub(pattern, text, source, flags=re.DOTALL)
    return source


if __name__ == "__main__":
    TARGET.write_text(awaited(SOURCE.read_text("utf-8")), "utf-8")

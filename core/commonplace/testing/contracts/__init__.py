"""Contracts of the ports: test classes to inherit from in a pytest module of one's own."""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "adapter",
            "checkpoints",
            "graph",
            "index",
            "journal",
            "relations",
            "snapshot",
        )
    )
)

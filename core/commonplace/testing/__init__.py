"""What the project tests itself with, shipped for whoever writes an engine or an adapter.

Import from the modules: the contracts are classes to inherit from in a pytest file of your own.
"""

import pytest

pytest.register_assert_rewrite(
    "commonplace.testing.index",
    "commonplace.testing.graph",
    "commonplace.testing.relations",
    "commonplace.testing.journal",
    "commonplace.testing.moving",
    "commonplace.testing.adapter",
    "commonplace.testing.checkpoints",
    "commonplace.testing.retention",
)

"""What the project tests itself with, shipped for whoever writes an engine or an adapter.

Import from the modules: the contracts are classes to inherit from in a pytest file of your own.
"""

import pytest

pytest.register_assert_rewrite(
    "commonplace.testing.contracts.index",
    "commonplace.testing.contracts.graph",
    "commonplace.testing.contracts.relations",
    "commonplace.testing.contracts.journal",
    "commonplace.testing.contracts.moving",
    "commonplace.testing.contracts.adapter",
    "commonplace.testing.contracts.checkpoints",
    "commonplace.testing.contracts.checkpoints",
)

"""Test contract of a LangGraph store, for authors of stores.

Import a class from the module `store` or `stock` and inherit from it in a pytest file of your own.
"""

import pytest

pytest.register_assert_rewrite(
    "commonplace_langgraph.testing.stock", "commonplace_langgraph.testing.store"
)

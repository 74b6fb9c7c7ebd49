"""Test contract of a LangGraph store, for authors of stores, and a chat model for tests.

Import a class from the module `store` or `stock` and inherit from it in a pytest file of your own.
"""

import contextlib

from .models import ScriptedModel

__all__ = ["ScriptedModel"]

with contextlib.suppress(ImportError):  # the model is for examples, too
    import pytest

    pytest.register_assert_rewrite(
        "commonplace_langgraph.testing.stock_store_contract",
        "commonplace_langgraph.testing.store_contract",
    )

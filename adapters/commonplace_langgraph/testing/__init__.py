"""Test contract of a LangGraph store, for authors of stores.

Import it from the module `store` and inherit from it in a pytest file of your own.
"""

import pytest

pytest.register_assert_rewrite("commonplace_langgraph.testing.store")

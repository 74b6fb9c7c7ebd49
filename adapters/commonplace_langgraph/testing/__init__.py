"""What a LangGraph store promises, as tests for whoever writes one.

Import from the module: the contract is a class to inherit from in a pytest file of your own.
"""

import pytest

pytest.register_assert_rewrite("commonplace_langgraph.testing.store")

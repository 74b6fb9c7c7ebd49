"""Who calls, read from the call stack, and what happens where a framework is not as it was."""

from collections.abc import Callable

import pytest

from commonplace.agents import StackFrame, StackRule, UnknownCallerError, read_stack

RULE = StackRule(checked_with="a_framework 1.0 to 1.9", variables=("self", "task"))


class Agent:
    """An agent of a framework."""

    def run(self, task: str, hook: Callable[[], list[StackFrame]]) -> list[StackFrame]:
        assert task
        return hook()


def module(name: str) -> "dict[str, object]":
    """Make the namespace of a framework's module, with a function that calls what it is given."""
    namespace: dict[str, object] = {"__name__": name}
    exec("def call(self, hook):\n    return hook()", namespace)
    return namespace


def test_callers_are_listed_from_the_innermost_with_their_variables() -> None:
    inner, outer = Agent(), Agent()
    frames = outer.run("Plan.", lambda: inner.run("Feed the cat.", lambda: read_stack(RULE)))

    assert [one.variables for one in frames if "task" in one.variables] == [
        {"self": inner, "task": "Feed the cat."},
        {"self": outer, "task": "Plan."},
    ]
    assert frames[0].module == __name__


def test_a_closure_s_variables_are_read_too() -> None:
    def hook(task: str) -> list[StackFrame]:
        def inner() -> list[StackFrame]:
            frames = read_stack_from_here()
            assert task
            return frames

        return inner()

    def read_stack_from_here() -> list[StackFrame]:
        return read_stack(RULE)

    assert hook("Feed the cat.")[0].variables == {"task": "Feed the cat."}


def test_variables_of_other_packages_are_not_read() -> None:
    call = module("a_framework.agent")["call"]
    rule = StackRule(checked_with="", package="a_framework.")
    frames = call("the agent", lambda: read_stack(rule))

    assert [(one.module, one.variables) for one in frames if one.variables] == [
        ("a_framework.agent", {"self": "the agent"})
    ]


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        (
            StackRule(checked_with="x 1.0", modules=("no_such_module.agent",)),
            "no_such_module.agent",
        ),
        (StackRule(checked_with="x 1.0", modules=("json.no_such_module",)), "json.no_such_module"),
        (StackRule(checked_with="x 1.0", caller="a_framework."), "no function of a_framework."),
    ],
)
def test_a_framework_that_has_changed_is_an_error_that_names_what_works(
    rule: StackRule, missing: str
) -> None:
    with pytest.raises(UnknownCallerError, match=missing) as raised:
        read_stack(rule)

    assert str(raised.value).endswith("Install a release that was tested: x 1.0.")


def test_a_framework_that_calls_is_known() -> None:
    call = module("a_framework.agent")["call"]
    rule = StackRule(checked_with="x 1.0", modules=("json",), caller="a_framework.")

    assert call(None, lambda: read_stack(rule))

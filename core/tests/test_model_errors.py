"""Errors of models: which of them a new attempt may help."""

from types import SimpleNamespace
from typing import Any

import pytest

from commonplace.errors import ModelFailedError, ModelRefusedError
from commonplace.model_calls import model_error


def with_status(text: str = "no", **given: Any) -> Exception:
    error = Exception(text)
    for name, value in given.items():
        setattr(error, name, value)
    return error


def caused(text: str, cause: Exception) -> Exception:
    error = RuntimeError(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        with_status(status_code=401),
        with_status(status=403),
        with_status(code=404),
        with_status(response=SimpleNamespace(status_code=401)),
        with_status(response={"ResponseMetadata": {"HTTPStatusCode": 400}}),
        caused("the framework's own", with_status(status_code=404)),
        TypeError("complete() got an unexpected keyword argument 'schema'"),
        ValueError("Unknown model 'gpt-99'"),
        RuntimeError("The model `gpt-99` does not exist or you do not have access to it."),
        ModelRefusedError(model="m", reason="r"),
    ],
    ids=repr,
)
def test_a_refusal_is_told_from_a_failure(error: Exception) -> None:
    made = model_error("m", error)

    assert isinstance(made, ModelRefusedError)
    assert error is made.__cause__


@pytest.mark.parametrize(
    "error",
    [
        with_status(status_code=429),
        with_status("model x not found, perhaps", status_code=503),
        with_status(code="timeout"),
        with_status(code=1006),
        ConnectionError("away"),
        TimeoutError(),
        TypeError("'NoneType' object is not subscriptable"),
        ModelFailedError(model="m", reason="cut off"),
        ValueError("the model says no"),
    ],
    ids=repr,
)
def test_a_failure_that_may_pass_is_no_refusal(error: Exception) -> None:
    made = model_error("m", error)

    assert type(made) is ModelFailedError
    assert error is made.__cause__

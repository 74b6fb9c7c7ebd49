"""Errors of models: which of them a new attempt may help, and what is no vector."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from commonplace.errors import InvalidVectorError, ModelFailedError, ModelRefusedError
from commonplace.model_calls import embed, model_error


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


class Answering:
    id, revision, dimensions = "answering", "1", 2

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed(self, texts: Any, *, purpose: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [[], [[]], [[1.0]], [[1.0, "2"]], [[1.0, None]], [[1.0, 1e300]], [[1.0, float("nan")]],
     [[0.0, 0.0]], [["1", "2"]], [[True, False]], [1.0, 2.0], None, [[1.0, 2.0], [1.0, 2.0]]],
    ids=repr,
)  # fmt: skip
def test_what_is_no_vector_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidVectorError):
        embed(Answering(answer), ["text"], purpose="document", limit=9)


@pytest.mark.parametrize("kind", [list, tuple, np.array, np.float32])
def test_vectors_are_the_same_in_whatever_they_come(kind: Any) -> None:
    answer = [kind([0.1, 1e-3])]
    [found] = embed(Answering(answer), ["text"], purpose="document", limit=9)
    single = np.array([0.1, 1e-3], np.float32)
    assert np.array_equal(found.vector, single / np.linalg.norm(single))

"""What `handlers` does, for callers that have no event loop; an asynchronous model is refused.

The work is done in a thread, which is left behind when it takes too long: it goes on, and whoever
waited does not.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from ..errors import MemoryTimeoutError
from ..memory import Memory
from ..model import Match, Scope
from .operations import (
    PROFILE,
    Found,
    additions,
    as_told,
    asked,
    found,
    question,
    recorded,
    searches,
    with_profile,
)
from .policy import WRITE_PATIENCE, Policy

T = TypeVar("T")
MOST_THREADS = 64

_threads = threading.BoundedSemaphore(MOST_THREADS)


def recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    """Recall for a turn, as `handlers.recall`.

    Raises:
        LoopRequiredError: the embedder is asynchronous.
        MemoryTimeoutError: it took longer than the policy allows.
    """
    work = partial(_recall, memory, scope, query, policy)
    return within(policy.recall_timeout, "recall", work)


def _recall(memory: Memory, scope: Scope, query: str, policy: Policy) -> list[Match]:
    page = memory.list(asked(scope, policy), **PROFILE)
    return with_profile(page, _search(memory, scope, query, policy))


def _search(memory: Memory, scope: Scope, query: str, policy: Policy) -> Sequence[Match]:
    text = question(query)
    if not text:
        return []
    where = asked(scope, policy)
    return memory.search(text, where, top_k=policy.top_k, threshold=policy.threshold)


def search_memory(
    memory: Memory,
    scope: Scope,
    policy: Policy,
    keywords: Sequence[str],
    limit: int | None = None,
) -> Found:
    """Search each keyword, one after the other, as `handlers.search_memory`.

    Raises:
        InvalidRecordError: more than 10 keywords, or a limit outside 1 to 20.
        LoopRequiredError: the embedder is asynchronous.
        MemoryTimeoutError: all of them took longer than the policy allows for one.
    """
    wanted, policy = searches(keywords, limit, policy)

    def search() -> list[Sequence[Match]]:
        return [_search(memory, scope, word, policy) for word in wanted]

    return found(wanted, within(policy.recall_timeout, "search_memory", search))


def add_memory(
    memory: Memory, scope: Scope, policy: Policy, thinking: str, content: Sequence[str]
) -> str:
    """Remember facts of the user, as `handlers.add_memory`.

    Raises:
        InvalidRecordError: there is no content, or more than 20 facts.
        LoopRequiredError: the embedder is asynchronous and the policy waits for the write.
        MemoryTimeoutError: the write takes longer than 10 seconds; it goes on.
    """
    facts = additions(content)
    adding = partial(memory.add, facts, scope.owner, **as_told(policy))
    return recorded(facts, within(WRITE_PATIENCE, "add_memory", adding), thinking)


def within(seconds: float, call: str, work: Callable[[], T]) -> T:
    """Do work in a thread of its own and wait for it, for so many seconds at most.

    Raises:
        MemoryTimeoutError: it is not done in time, or 64 threads are at work that nobody waits for.
    """
    if not _threads.acquire(timeout=seconds):
        raise MemoryTimeoutError(call=call, seconds=seconds)
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 -- whoever waits for it is told
            done.set_exception(error)
        finally:
            _threads.release()

    threading.Thread(target=run, name=f"commonplace-{call}", daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            return done.result()  # in the last moment, or a timeout of the work's own
        raise MemoryTimeoutError(call=call, seconds=seconds) from None

"""Contracts of the ports: test classes to inherit from in a pytest module of one's own."""

import threading
from collections.abc import Callable

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "adapter",
            "checkpoints",
            "graph",
            "index",
            "journal",
            "relations",
            "snapshot",
            "repeated_facts",
            "sessions",
            "sources",
        )
    )
)


def at_once(number: int, work: Callable[[int], object]) -> None:
    """Call work with 0, 1, 2 and so on, in threads that begin together, and wait for all.

    Raises:
        BaseException: what failed first in one of them.
    """
    gate = threading.Barrier(number)
    failures: list[BaseException] = []

    def run(one: int) -> None:
        try:
            gate.wait()
            work(one)
        except BaseException as error:  # noqa: BLE001 -- raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

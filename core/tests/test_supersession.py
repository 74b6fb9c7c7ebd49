"""Which value holds when does not depend on the order in which the values arrived."""

from hypothesis import given
from hypothesis import strategies as some

from commonplace.backends.sqlite.assertions import Assertion, Span, resolve

ASSERTIONS = some.lists(
    some.builds(
        Assertion,
        some.sampled_from("abc"),
        some.integers(0, 9),
        some.none() | some.integers(10, 20),
    ),
    max_size=8,
)


def test_no_assertion_resolves_to_nothing() -> None:
    assert [] == resolve([])


def test_a_later_value_ends_the_earlier_and_the_last_holds() -> None:
    spans = resolve([Assertion("c", 7), Assertion("a", 1), Assertion("b", 3)])

    assert [Span(None), Span(3), Span(7)] == spans


def test_values_from_the_same_moment_conflict_until_another_follows() -> None:
    spans = resolve([Assertion("a", 1), Assertion("b", 1), Assertion("a", 1), Assertion("c", 2)])

    assert [Span(2, (1,)), Span(2, (0, 2)), Span(2, (1,)), Span(None)] == spans


def test_an_earlier_end_that_was_asserted_holds() -> None:
    assert [Span(2), Span(None)] == resolve([Assertion("a", 1, 2), Assertion("b", 5)])
    assert [Span(5), Span(None)] == resolve([Assertion("a", 1, 9), Assertion("b", 5)])


@given(ASSERTIONS, some.randoms())
def test_any_order_resolves_alike(assertions: list[Assertion], chance: object) -> None:
    order = list(range(len(assertions)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    spans = resolve(assertions)
    shuffled = resolve([assertions[place] for place in order])

    assert [spans[place].ends for place in order] == [span.ends for span in shuffled]
    conflicts = [{assertions[p] for p in spans[place].conflicts} for place in order]
    assert conflicts == [{assertions[order[p]] for p in span.conflicts} for span in shuffled]


@given(ASSERTIONS)
def test_at_any_moment_one_value_holds_or_all_that_do_conflict(assertions: list[Assertion]) -> None:
    spans = resolve(assertions)
    for moment in range(22):
        holding = [
            (assertion, span)
            for assertion, span in zip(assertions, spans, strict=True)
            if assertion.begins <= moment and (span.ends is None or moment < span.ends)
        ]
        values = {assertion.value for assertion, _ in holding}
        assert len(values) <= 1 or all(span.conflicts for _, span in holding)
        for assertion, span in holding:
            assert span.ends is None or span.ends > assertion.begins

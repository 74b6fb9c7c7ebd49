"""Which value holds when does not depend on the order in which the values came."""

from hypothesis import given
from hypothesis import strategies as some

from commonplace.backends.shared.supersession import Assertion, Span, resolve

CLAIMS = some.lists(
    some.builds(
        Assertion,
        some.sampled_from("abc"),
        some.integers(0, 9),
        some.none() | some.integers(10, 20),
    ),
    max_size=8,
)


def test_no_claim_settles_to_nothing() -> None:
    assert [] == resolve([])


def test_a_later_value_ends_the_earlier_and_the_last_holds() -> None:
    spans = resolve([Assertion("c", 7), Assertion("a", 1), Assertion("b", 3)])

    assert [Span(None), Span(3), Span(7)] == spans


def test_values_from_the_same_moment_are_rivals_until_another_follows() -> None:
    spans = resolve([Assertion("a", 1), Assertion("b", 1), Assertion("a", 1), Assertion("c", 2)])

    assert [Span(2, (1,)), Span(2, (0, 2)), Span(2, (1,)), Span(None)] == spans


def test_an_earlier_end_that_was_told_holds() -> None:
    assert [Span(2), Span(None)] == resolve([Assertion("a", 1, 2), Assertion("b", 5)])
    assert [Span(5), Span(None)] == resolve([Assertion("a", 1, 9), Assertion("b", 5)])


@given(CLAIMS, some.randoms())
def test_any_order_settles_alike(claims: list[Assertion], chance: object) -> None:
    order = list(range(len(claims)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    spans = resolve(claims)
    shuffled = resolve([claims[place] for place in order])

    assert [spans[place].ends for place in order] == [span.ends for span in shuffled]
    rivals = [{claims[p] for p in spans[place].rivals} for place in order]
    assert rivals == [{claims[order[p]] for p in span.rivals} for span in shuffled]


@given(CLAIMS)
def test_at_any_moment_one_value_holds_or_all_that_do_are_rivals(claims: list[Assertion]) -> None:
    spans = resolve(claims)
    for moment in range(22):
        holding = [
            (claim, span)
            for claim, span in zip(claims, spans, strict=True)
            if claim.begins <= moment and (span.ends is None or moment < span.ends)
        ]
        values = {claim.value for claim, _ in holding}
        assert len(values) <= 1 or all(span.rivals for _, span in holding)
        for claim, span in holding:
            assert span.ends is None or span.ends > claim.begins

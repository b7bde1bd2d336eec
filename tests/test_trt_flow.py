# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: loops and conditionals inside of each other, conditions that read iterators, last values that are no recurrences, and outputs
of a length of their own, against numpy."""

import numpy as np
import pytest
from trt_networks import run, trt

SUM, PROD, LESS = (getattr(trt.ElementWiseOperation, name) for name in ("SUM", "PROD", "LESS"))
COUNT, WHILE = trt.TripLimit.COUNT, trt.TripLimit.WHILE
LAST, ALL, REVERSE = trt.LoopOutput.LAST_VALUE, trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE
X = np.arange(12, dtype=np.float32).reshape(3, 4) / 4


def number(n, value, dtype=np.int32):
    return n.add_constant((), np.array([value], dtype)).get_output(0)


def binary(n, op, a, b):
    return n.add_elementwise(a, b, op).get_output(0)


def scalar(n, tensor):
    """The first element."""
    flat = n.add_shuffle(tensor)
    flat.reshape_dims = (-1,)
    one = n.add_shuffle(n.add_slice(flat.get_output(0), (0,), (1,), (1,)).get_output(0))
    one.reshape_dims = ()
    return one.get_output(0)


def counted(n, times, initial):
    loop = n.add_loop()
    loop.add_trip_limit(number(n, times), COUNT)
    return loop, loop.add_recurrence(initial)


def given(loop, tensor, kind=LAST, axis=0, length=None):
    output = loop.add_loop_output(tensor, kind, axis)
    if length is not None:
        output.set_input(1, length)
    return output.get_output(0)


@pytest.mark.parametrize("times, length", [(3, 5), (5, 3), (4, 4), (0, 2)])
def test_outputs_of_all_iterations_have_the_length_that_is_asked(times, length):
    def make(n, x):
        loop, state = counted(n, times, x)
        following = binary(n, SUM, state.get_output(0), x)
        state.set_input(1, following)
        wanted = number(n, length)
        return [given(loop, state.get_output(0)), given(loop, following, ALL, 0, wanted), given(loop, following, ALL, 1, wanted),
                given(loop, state.get_output(0), ALL, 2, wanted)]

    last, first, second, third = run(make, X)
    np.testing.assert_allclose(last, X * (times + 1))
    rows = np.zeros((length, 3, 4), np.float32)
    before = rows.copy()
    for at in range(min(times, length)):
        rows[at], before[at] = X * (at + 2), X * (at + 1)
    np.testing.assert_allclose(first, rows)
    np.testing.assert_allclose(second, rows.transpose(1, 0, 2))
    np.testing.assert_allclose(third, before.transpose(1, 2, 0))


def test_a_loop_inside_of_a_loop():
    def make(n, x):
        outer, row = counted(n, 3, x)
        inner = n.add_loop()
        inner.add_trip_limit(number(n, 2), COUNT)
        state = inner.add_recurrence(row.get_output(0))
        state.set_input(1, binary(n, SUM, state.get_output(0), x))  # what lies outside of both is read, too
        made = given(inner, state.get_output(0))
        twice = binary(n, SUM, made, made)
        row.set_input(1, twice)
        return [given(outer, row.get_output(0)), given(outer, made, ALL, 0, number(n, 3))]

    last, rows = run(make, X)
    expected, all_ = X, []
    for _ in range(3):
        all_.append(expected + 2 * X)
        expected = 2 * all_[-1]
    np.testing.assert_allclose(last, expected)
    np.testing.assert_allclose(rows, np.stack(all_))


def test_an_inner_loop_of_the_outer_ones_slices_and_count():
    def make(n, x, counts):
        outer = n.add_loop()
        outer.add_trip_limit(number(n, 3), COUNT)
        row, times = outer.add_iterator(x, 0), outer.add_iterator(counts, 0)
        inner = n.add_loop()
        inner.add_trip_limit(times.get_output(0), COUNT)
        state = inner.add_recurrence(row.get_output(0))
        state.set_input(1, binary(n, PROD, state.get_output(0), row.get_output(0)))
        return given(outer, given(inner, state.get_output(0)), ALL, 0, number(n, 3))

    counts = np.array([0, 2, 3], np.int32)
    np.testing.assert_allclose(run(make, X, counts), np.stack([row ** (count + 1) for row, count in zip(X, counts)]), rtol=1e-5)


def test_a_conditional_inside_of_a_loop():
    def make(n, x):
        loop, state = counted(n, 5, x)
        choice = n.add_if_conditional()
        choice.set_condition(binary(n, LESS, scalar(n, state.get_output(0)), number(n, 3.0, np.float32)))
        entry = choice.add_input(state.get_output(0)).get_output(0)
        one = n.add_constant((1, 1), np.ones(1, np.float32)).get_output(0)
        two = n.add_constant((1, 1), np.full(1, 2, np.float32)).get_output(0)
        state.set_input(1, choice.add_output(binary(n, SUM, entry, one), binary(n, PROD, entry, two)).get_output(0))
        return given(loop, state.get_output(0))

    expected = X + 1
    for _ in range(5):
        expected = expected + 1 if expected.flat[0] < 3 else expected * 2
    np.testing.assert_allclose(run(make, X + 1), expected)


@pytest.mark.parametrize("first", (0.0, 1.0))
def test_a_loop_inside_of_a_conditional(first):
    def make(n, x):
        choice = n.add_if_conditional()
        choice.set_condition(binary(n, LESS, scalar(n, x), number(n, 0.5, np.float32)))
        entry = choice.add_input(x).get_output(0)
        loop, state = counted(n, 3, entry)
        state.set_input(1, binary(n, SUM, state.get_output(0), state.get_output(0)))
        inner = n.add_if_conditional()
        inner.set_condition(binary(n, LESS, number(n, 1), number(n, 2)))
        same = inner.add_input(entry).get_output(0)
        return choice.add_output(given(loop, state.get_output(0)),
                                 inner.add_output(binary(n, PROD, same, same), same).get_output(0)).get_output(0)

    x = X + first
    np.testing.assert_allclose(run(make, x), 8 * x if first == 0 else x * x)


def test_last_values_of_what_is_no_recurrence():
    def make(n, x):
        loop, state = counted(n, 3, x)
        row = loop.add_iterator(x, 0, True)
        product = binary(n, PROD, state.get_output(0), state.get_output(0))
        state.set_input(1, binary(n, SUM, state.get_output(0), x))
        return [given(loop, product), given(loop, row.get_output(0)), given(loop, state.get_output(0))]

    product, row, state = run(make, X)
    np.testing.assert_allclose(product, (3 * X) ** 2)
    np.testing.assert_allclose(row, X[0])
    np.testing.assert_allclose(state, 4 * X)


@pytest.mark.parametrize("limit", (3.0, 100.0))
@pytest.mark.parametrize("reverse", (False, True))
def test_a_condition_that_reads_an_iterator(limit, reverse):
    """The loop goes on while the slice's first element is small, and at most over all slices."""
    def make(n, x):
        loop = n.add_loop()
        row = loop.add_iterator(x, 0, reverse)
        loop.add_trip_limit(binary(n, LESS, scalar(n, row.get_output(0)), number(n, limit, np.float32)), WHILE)
        loop.add_trip_limit(number(n, 4), COUNT)
        total = loop.add_recurrence(n.add_constant((3,), np.zeros(3, np.float32)).get_output(0))
        total.set_input(1, binary(n, SUM, total.get_output(0), row.get_output(0)))
        return given(loop, total.get_output(0))

    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = np.zeros(3, np.float32)
    for row in rows[::-1] if reverse else rows:
        if not row[0] < limit:
            break
        expected += row
    np.testing.assert_allclose(run(make, rows), expected)


def test_a_while_loop_inside_of_a_loop():
    """Each row is doubled until its first element is no longer small."""
    def make(n, x):
        outer = n.add_loop()
        outer.add_trip_limit(number(n, 3), COUNT)
        row = outer.add_iterator(x, 0)
        inner = n.add_loop()
        state = inner.add_recurrence(row.get_output(0))
        inner.add_trip_limit(binary(n, LESS, scalar(n, state.get_output(0)), number(n, 10.0, np.float32)), WHILE)
        state.set_input(1, binary(n, SUM, state.get_output(0), state.get_output(0)))
        return given(outer, given(inner, state.get_output(0)), ALL, 0, number(n, 3))

    expected = (X + 1).copy()
    for row in expected:
        while row[0] < 10:
            row *= 2
    np.testing.assert_allclose(run(make, X + 1), expected)


def test_reversed_outputs_and_three_levels():
    def make(n, x):
        first, a = counted(n, 2, x)
        second = n.add_loop()
        second.add_trip_limit(number(n, 2), COUNT)
        b = second.add_recurrence(a.get_output(0))
        third = n.add_loop()
        third.add_trip_limit(number(n, 3), COUNT)
        c = third.add_recurrence(b.get_output(0))
        c.set_input(1, binary(n, SUM, c.get_output(0), x))
        b.set_input(1, given(third, c.get_output(0)))
        made = given(second, b.get_output(0))
        a.set_input(1, made)
        return given(first, made, REVERSE, 0, number(n, 2))

    np.testing.assert_allclose(run(make, X), np.stack([13 * X, 7 * X]))

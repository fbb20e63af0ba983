"""What chapter 25 is judged with: orders, the time that they take, and what they keep in flight."""

from __future__ import annotations

import pytest

from grader.api import catalogue
from grader.course.chapters.ch25_pipeline import (
    gpipe,
    in_turn,
    most_in_flight,
    one_f_one_b,
    schedule_seconds,
    whole,
)

ORDERS = {
    "GPipe": lambda stage, stages, m: gpipe(m),
    "GPipe, down": lambda stage, stages, m: gpipe(m, down=True),
    "1F1B": one_f_one_b,
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(("stages", "m"), [(1, 3), (2, 1), (4, 6), (4, 2), (8, 20)])
def test_a_schedule_fills_and_drains_once(name, stages, m):
    orders = [ORDERS[name](stage, stages, m) for stage in range(stages)]
    assert schedule_seconds(orders, 1.0, 2.5) == (m + stages - 1) * 3.5


def test_micro_batches_in_turn_take_the_time_of_all_stages_each():
    assert schedule_seconds([in_turn(3)] * 4, 1.0, 2.0) == 3 * 4 * 3


def test_orders_that_wait_for_each_other_have_no_time():
    with pytest.raises(ValueError, match="wait for each other"):
        schedule_seconds([in_turn(2), gpipe(2)], 1.0, 1.0)


def test_what_is_in_flight_is_what_the_literature_says():
    assert [most_in_flight(one_f_one_b(stage, 4, 9)) for stage in range(4)] == [4, 3, 2, 1]
    assert [most_in_flight(one_f_one_b(stage, 4, 2)) for stage in range(4)] == [2, 2, 2, 1]
    assert most_in_flight(gpipe(9)) == 9


def test_the_oracle_leaves_the_inputs_as_they_are():
    case = next(c for c in catalogue()["run_pipeline"].cases(1, 2) if c.name == "one micro-batch")
    first, second = whole(case), whole(case)
    assert not any(w.requires_grad for weights in case.weights for w in weights)
    assert first[0]["gradient of w_in"].equal(second[0]["gradient of w_in"])
    assert (first[0]["the loss"], first[1]["the loss"]) == (None, second[1]["the loss"])

"""What ranks say of values that should be the same, compared."""

from __future__ import annotations

import itertools
import pickle
import re

import numpy as np
import pytest
import torch

from headcount.core.events import Same, SameValue
from headcount.rank.same import parts
from headcount.trace import replicas
from headcount.trace.replicas import SameValues


def parts_of(value):
    return dict(parts(value))


#: Each differs from all others of its row.
DIFFERENT = {
    "numbers": [1, 1.0, True, 1 + 0j, 0.1, 0.1 + 2**-53, -0.0, 0.0, float("nan"), None, "1"],
    "texts": ["a", "b", b"a", "", "\udc80", "a" * 2000, "a" * 2001],
    "tensors": [
        *(torch.ones(2), torch.ones(2, 1), torch.ones(2, dtype=torch.float64), torch.ones(1)),
        *(torch.tensor(1.0), torch.tensor(1), torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])),
        *(torch.tensor([float("nan"), 0.0]), torch.tensor([0.0, float("nan")]), torch.empty(0)),
        *(torch.zeros(5), -torch.zeros(5), torch.ones(5, dtype=torch.bool)),
        *(torch.ones(5, dtype=torch.bfloat16), torch.ones(5, dtype=torch.complex64)),
    ],
    "containers": [[], (), {}, set(), [1], [1, 1], (1,), {0: 1}, {1}, [[1]], {"a": {"b": 1}}],
}


@pytest.mark.parametrize("values", DIFFERENT.values(), ids=DIFFERENT)
def test_values_that_differ_in_a_bit_or_in_their_type_have_other_parts(values):
    for one, other in itertools.combinations(values, 2):
        assert parts_of(one) != parts_of(other), (one, other)


def test_what_holds_the_same_has_the_same_parts():
    x = torch.arange(12.0).reshape(3, 4)
    assert parts_of(x.T.contiguous().T) == parts_of(x)
    assert parts_of(np.arange(12, dtype=np.float32).reshape(3, 4)) == parts_of(x)
    assert parts_of({"a": 1, "b": {2, 3}}) == parts_of({"b": {3, 2}, "a": 1})
    assert parts_of(float("nan")) == parts_of(float("nan"))
    layer = torch.nn.Linear(2, 2)
    assert parts_of(layer) == parts_of(layer.state_dict())
    assert set(parts_of(layer)) == {"", "['weight']", "['bias']"}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (len, "; this is a builtin_function_or_method: give same a text or numbers"),
        ({"a": [1, object()]}, "; ['a'][1] is an object: give same a text"),
        (np.array(["a"]), "; this is a ndarray of <U1"),
        (
            [torch.ones(2).to_sparse()],
            "; [0] is a Tensor of torch.sparse_coo, torch.float32, cpu: ",
        ),
        (torch.ones(2, device="meta"), "torch.float32, meta: give same a dense tensor of its"),
    ],
)
def test_what_cannot_be_compared_is_named_with_its_place_and_the_mend(value, complaint):
    with pytest.raises(TypeError, match=re.escape(complaint)):
        parts_of(value)


def says(*parts, members=(0, 1, 2), name="", line=3):
    values = [SameValue(key, hash(text) % 2**60, text) for key, text in parts]
    return Same(list(members), name, values, "train.py", line)


def test_the_minority_is_named_once_all_have_come():
    compared = SameValues()
    for rank, text in ((2, "0.2"), (0, "0.1")):
        assert compared.take(rank, says(("['lr']", text), ("['wd']", "0"), name="state")) is None
    found = compared.take(1, says(("['lr']", "0.1"), ("['wd']", "1"), name="state"))
    assert found.message == (
        "rank 2 holds another value of state['lr'] than ranks 0 and 1 at line 3 (0.2 on rank 2;"
        " 0.1 on ranks 0 and 1)"
    )
    assert found.detail == ("of 2 compared, so does state['wd']",)
    assert (found.rank, found.site.line) == (2, 3)


def test_a_part_that_a_rank_does_not_have_differs():
    compared = SameValues()
    compared.take(0, says(("['a']", "1"), ("['b']", "2"), members=(0, 1)))
    found = compared.take(1, says(("['a']", "1"), members=(0, 1)))
    assert "['b'] differs between ranks 0 and 1 at line 3 (2 on rank 0; nothing on rank 1)" in (
        found.message
    )


def test_calls_are_compared_by_name_or_by_line_and_in_their_order():
    compared = SameValues()
    calls = [says(("", text), members=(0, 1), line=line) for text, line in (("a", 3), ("b", 9))]
    calls += [says(("", text), members=(0, 1), name="n", line=20) for text in "cd"]
    for call in calls:
        assert compared.take(0, call) is None
    for call in (calls[1], calls[0], calls[2]):
        assert compared.take(1, call) is None
    elsewhere = says(("", "x"), members=(0, 1), name="n", line=30)
    found = compared.take(1, elsewhere)
    assert "n differs between ranks 0 and 1 at line 20, the 2nd time" in (found.message)
    assert [*compared.remarks()] == []


def test_where_some_ranks_never_come_a_remark_says_so():
    compared = SameValues()
    for _ in range(2):
        compared.take(1, says(("", "1"), name="loss"))
    compared.take(0, says(("", "1"), name="loss"))
    compared.take(2, says(("", "1"), name="loss"))
    assert [*compared.remarks()] == [
        "line 3: loss is not compared: rank 1 calls headcount.same there 2 times, ranks 0 and 2"
        " call it less often"
    ]


def test_what_waits_for_other_ranks_has_a_bound(monkeypatch):
    monkeypatch.setattr(replicas, "KEPT", 10)
    compared = SameValues()
    for _ in range(100):
        compared.take(0, says(("", "1"), ("[0]", "1")))
    assert next(compared.remarks()).startswith("headcount.same: 95 values could not be kept")


def test_names_that_are_used_once_are_forgotten():
    """As of a program that names each step; what it keeps is told by its size when it travels."""

    def size(steps):
        compared = SameValues()
        for step in range(steps):
            for rank in range(3):
                assert compared.take(rank, says(("", "1"), name=f"step {step}")) is None
        return len(pickle.dumps(compared))

    assert size(40_000) < 1.2 * size(10_000)

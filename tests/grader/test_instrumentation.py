"""What adapters can find out: refused operations, lines of the student's code, gradients."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import grader
from grader.exercise.compare import compare, differing_bits
from grader.exercise.limits import held, point, sent_elements
from grader.instruments import (
    HeldStorages,
    PeakStorages,
    ReceivedStorages,
    count_lines,
    differentiate,
    elementwise_by_hand,
    refuse_operations,
)
from grader.instruments.marks import memory_mark
from headcount.core.verdict import Diagnosis
from headcount.rank.recorder import ForbiddenCall
from headcount.rank.torch_startup import LEFT_OUT
from support.worlds import line_in, play
from tests.grader.test_judge import declare, judge

NAMES = frozenset({"scatter_add", "index_add"})
INDEX, SOURCE = torch.tensor([0, 1, 0]), torch.ones(3)


def _function(x):
    return torch.scatter_add(x, 0, INDEX, SOURCE)


def _method(x):
    return x.clone().scatter_add_(0, INDEX, SOURCE)


def _other(x):
    return x.index_add(0, INDEX, SOURCE)


def _by_operator(x):
    return torch.ops.aten.scatter_add(x, 0, INDEX, SOURCE)


def _swallowed(x):
    try:
        return _function(x)
    except Exception:
        return x


@pytest.mark.parametrize("answer", [_function, _method, _other, _by_operator, _swallowed])
def test_a_refused_operation_is_refused_by_every_name(answer):
    with pytest.raises(ForbiddenCall, match=r"(scatter|index)_add is what this exercise asks"):
        refuse_operations(NAMES, answer, torch.zeros(2))


def test_other_operations_pass():
    assert refuse_operations(NAMES, torch.Tensor.index_select, SOURCE, 0, INDEX).tolist() == [
        1,
        1,
        1,
    ]


def test_what_computes_element_by_element_may_move_tensors_and_compute_on_single_elements():
    few, many = torch.ones(1), torch.ones(2)
    assert elementwise_by_hand(torch.add, few, few).tolist() == [2]
    assert elementwise_by_hand(lambda x: torch.empty_like(x).copy_(x), many).tolist() == [1, 1]
    for compute, operands in ((torch.add, 2), (torch.addcmul, 3), (torch.lerp, 3), (torch.dot, 2)):
        with pytest.raises(ForbiddenCall, match="write the loop over their elements"):
            elementwise_by_hand(compute, *(many,) * operands)


INSTRUMENTED = """
import sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
import torch, grader.instruments as p
before = set(sys.modules)
p.refuse_operations(frozenset({'scatter_add'}), torch.clone, torch.ones(1))
print("refusing:", *(set(sys.modules) - before))
before = set(sys.modules)
p.differentiate(torch.neg, [torch.ones(2)], {'x': 0}, torch.ones(2))
print("differentiated:", *(set(sys.modules) - before))
before = set(sys.modules)
with p.HeldStorages(list):
    torch.ones(2)
print("held:", *(set(sys.modules) - before))
"""


@pytest.mark.exhaustive
def test_an_instrument_imports_nothing():
    # it would be imported in every rank, while the clock of the student's call runs
    done = subprocess.run([sys.executable, "-c", INSTRUMENTED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("refusing:\ndifferentiated:\nheld:\n", "")


def _deferred(code):
    """Run code in a process of its own, where torch's compiler is deferred."""
    begin = (
        "import sys, torch, headcount.rank.torch_startup as p\n"
        "NAMES = 'torch._dynamo', 'torch.fx.experimental.symbolic_shapes'\n"
        "def there(): return [type(sys.modules.get(n)).__name__ for n in NAMES]\n"
    )
    done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.exhaustive
def test_training_imports_no_compiler():
    assert _deferred(
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "with p.without_compiler():\n"
        "    optimizer = torch.optim.AdamW([weight], lr=0.5)\n"
        "    (3 * weight).backward(torch.ones(2))\n"
        "    print(weight.grad.tolist())\n"
        "    try: (3 * weight).backward(torch.ones(3))\n"
        "    except RuntimeError as error: print('[3]' in str(error))\n"
        "    optimizer.step(); optimizer.zero_grad()\n"
        "    @torch._dynamo.disable(recursive=False)\n"
        "    def plain(): return 1\n"
        "    print(plain(), torch._dynamo.utils.get_optimize_ddp_mode(), *there())\n"
        "print(*there(), '_dynamo' in vars(torch), 'torch.utils._sympy.functions' in sys.modules)"
    ) == [
        "[3.0, 3.0]",
        "True",
        "1 ddp_optimizer _Deferred _Deferred",
        "NoneType NoneType False False",
    ]


@pytest.mark.parametrize(
    "asks",
    [
        "from torch._dynamo import config; torch._dynamo.trace_rules",
        "import torch._dynamo.exc",
        "import torch._dynamo.utils; torch._dynamo.utils.counters",
        "import torch._dynamo.profiler",  # which the package does not import itself
    ],
)
def test_what_asks_for_more_of_the_compiler_gets_all_of_it(asks):
    lines = _deferred(
        "p.defer_compiler(); p.defer_compiler()\n"
        f"{asks}\n"
        "import torch._dynamo.exc as exc, torch._dynamo.config as config\n"
        "print(there()[0], torch._dynamo is sys.modules['torch._dynamo'])\n"
        "print(torch._dynamo.exc is exc is sys.modules['torch._dynamo.exc'])\n"
        "print(exc.__spec__.origin == exc.__file__, config is torch._dynamo.config)\n"
        "print(torch._dynamo.disable.__module__)\n"
    )
    assert lines == ["module True", "True", "True True", "torch._dynamo.decorators"]


def test_a_rank_that_has_waited_in_vain_for_memory_waits_less(monkeypatch):
    waits = []
    wait = "grader.instruments.storages.wait_until"
    monkeypatch.setattr(wait, lambda condition, timeout: waits.append(timeout))
    monkeypatch.setattr(HeldStorages, "patience", 0.5)
    held = HeldStorages(list)
    for most in (0, 0, 8, 8, 0):
        held.settle(most)
    assert waits == [0.5, 0.5, 0.5, 0.05, 0.05]


def _uses_scatter_add(x):
    y = torch.zeros(2)
    return y.scatter_add(0, INDEX, x)


def test_a_refused_operation_is_a_forbidden_call_with_its_line():
    exercise = declare(
        adapter=lambda f, x: refuse_operations(NAMES, f, x),
        expected=lambda c: [torch.zeros(2)] * c.n,
    )
    verdict = judge(_uses_scatter_add, exercise)
    assert verdict.diagnosis is Diagnosis.FORBIDDEN_CALL
    assert verdict.score == 0
    assert "scatter_add is what this exercise asks you to write" in verdict.message
    assert verdict.gravest_failure.site.line > 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: [row + 1 for row in x],
        lambda x: sum(row for row in x),
        lambda x: list(map(lambda row: row + 1, x)),  # noqa: C417
        lambda x: [_helper(row) for row in x],
    ],
)
def test_the_turns_of_every_kind_of_loop_are_counted(answer):
    assert count_lines(answer, torch.ones(100)) - count_lines(answer, torch.ones(10)) >= 90


def _helper(row):
    return row


def test_what_torch_does_inside_is_not_counted():
    def vectorised(x):
        y = torch.nn.functional.gelu(x)
        return y.sum()

    assert count_lines(vectorised, torch.ones(1000)) == count_lines(vectorised, torch.ones(10)) <= 5


def test_gradients_are_pulled_back_to_every_leaf():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    found = differentiate(lambda x, y: x * y, [x, y], {"x": 0, "y": 1}, torch.tensor([1.0, 10.0]))
    assert found["result"].tolist() == [3, 8]
    assert not found["result"].requires_grad
    assert found["gradient of x"].tolist() == [3, 40]
    assert found["gradient of y"].tolist() == [1, 20]


def test_no_gradient_where_none_flows():
    found = differentiate(lambda x: x.detach() * 2, [torch.ones(2)], {"x": 0}, torch.ones(2))
    assert found["gradient of x"] is None


@pytest.mark.parametrize(
    "answer, gradient",
    [(lambda x: (2 * x)[:1], [2.0, 0.0]), (lambda x: (2 * x).double(), [2.0, 2.0])],
)
def test_a_result_of_another_shape_or_dtype_goes_backward_all_the_same(answer, gradient):
    # other ranks may wait in backward for what this one sends there
    found = differentiate(answer, [torch.ones(2)], {"x": 0}, 3 * torch.ones(2))
    assert found["gradient of x"].tolist() == gradient


class _NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


class _BackwardIsAStub(_NoBackward):
    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError("my backward")


@pytest.mark.parametrize(
    "function, says",
    [(_NoBackward, "You must implement either the backward"), (_BackwardIsAStub, "my backward")],
)
def test_an_answer_without_its_backward_has_been_attempted(function, says):
    exercise = declare(
        adapter=lambda f, x: differentiate(f, [x], {"x": 0}, torch.ones_like(x)),
        expected=lambda c: [{"result": 2 * c.x[0]}] * c.n,
    )
    verdict = judge(lambda x: function.apply(x), exercise)
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert "backward is not written yet" in verdict.message
    assert says in verdict.message


def test_a_stub_of_backward_is_named_by_its_line():
    with pytest.raises(RuntimeError, match="not written yet") as caught:
        differentiate(_BackwardIsAStub.apply, [torch.ones(2)], {"x": 0}, torch.ones(2))
    assert caught.traceback[-1].name == "backward"


def test_a_wrong_gradient_has_a_word_of_its_own():
    right = {"result": torch.ones(2), "gradient of x": torch.ones(2)}
    wrong = right | {"gradient of x": 2 * torch.ones(2)}
    found = compare(right, wrong)
    assert found.diagnosis is Diagnosis.WRONG_GRADIENT
    assert "element [0] of gradient of x should be 1.0, but is 2.0" in found.message
    found = compare(right, right | {"gradient of x": None})
    assert found.diagnosis is Diagnosis.WRONG_GRADIENT
    found = compare(right, right | {"result": torch.zeros(2)})
    assert found.diagnosis is Diagnosis.WRONG_VALUE
    assert "of the result" in found.message


def test_differing_bits_are_named_with_all_their_digits():
    one = torch.tensor([0.1, 0.2])
    other = one.clone()
    other[1] = torch.nextafter(one[1], one[0])
    assert differing_bits(one, one.clone()) is None
    assert differing_bits(one, other) == "element [1]: 0.200000003 and 0.199999988"
    assert differing_bits([one, one], [one, other]).startswith("entry 1, element [1]")
    assert differing_bits({"a": one, "b": one}, {"b": one, "a": one}) is None
    assert differing_bits({"a": one, "b": one}, {"a": one, "b": other}).startswith("b, element [1]")


def test_zeros_of_either_sign_are_equal_and_have_other_bits():
    zeros = torch.tensor([0.0, 0.0, -0.0])
    assert compare(zeros, -zeros) is None
    assert differing_bits(zeros, torch.tensor([0.0, -0.0, -0.0])) == "element [1]: 0 and -0"
    nan = torch.tensor([float("nan")])
    assert differing_bits(nan, -nan) is None


# Rounding that depends on who comes first. ------------------------------------------


def _summed_as_they_come(x):
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(x, 0)
        dist.recv(x, 0)
        return x.clone()
    buffer = torch.empty_like(x)
    for _ in range(n - 1):
        dist.recv(buffer)
        x += buffer
    for other in range(1, n):
        dist.send(x, other)
    return x.clone()


def _summed_by_everyone_from_itself_on(x):
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    total = x.clone()
    for k in range(1, n):
        request = dist.isend(x, (rank + k) % n)
        buffer = torch.empty_like(x)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        total += buffer
    return total


def _sum(**changes):
    from grader.exercise.cases import OPS, Kind, PerRank, magnitude, reduced

    kind = Kind(torch.float32, (2000,))
    return declare(
        # random numbers: the readable ones of a first case are added up without rounding
        inputs=lambda draw: [draw.case("a", x=PerRank(draw.tensor(kind) for _ in draw.ranks))],
        expected=lambda c: [reduced(OPS["SUM"], c.x)] * c.n,
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(OPS["SUM"], c.x)] * c.n,
        adapter=lambda f, x: f(x.clone()),
        **{"world_sizes": (4,), "same_bits": True, **changes},
    )


def test_a_result_that_depends_on_the_order_of_arrival_is_nondeterministic():
    verdict = judge(_summed_as_they_come, _sum())
    assert verdict.diagnosis is Diagnosis.NONDETERMINISTIC
    assert "rank 0 does not hold the same bits when it is run again, element [" in verdict.message
    assert judge(_summed_as_they_come, _sum(same_bits=False)).passed
    assert judge(_summed_as_they_come, _sum(world_sizes=(2,))).passed  # a + b is b + a


def test_ranks_that_round_differently_are_nondeterministic():
    verdict = judge(_summed_by_everyone_from_itself_on, _sum())
    assert verdict.diagnosis is Diagnosis.NONDETERMINISTIC
    assert "rank 0 and rank 1 hold different bits, element [" in verdict.message


# What only the traffic shows. --------------------------------------------------------


def _dissemination():
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    step, token = 1, torch.zeros(1)
    while step < n:
        request = dist.isend(token, (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()
        step *= 2


def _only_the_right_neighbour_hears():
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    request = dist.isend(torch.zeros(1), (rank + 1) % n)
    dist.recv(torch.zeros(1), (rank - 1) % n)
    request.wait()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_after_a_dissemination_everybody_has_heard_from_everybody(n):
    from headcount.trace.trace import heard_from

    assert heard_from(play(_dissemination, n).trace) == [frozenset(range(n))] * n


def test_one_round_tells_only_the_neighbour():
    from headcount.trace.trace import heard_from

    heard = heard_from(play(_only_the_right_neighbour_hears, 4).trace)
    assert heard == [{3, 0}, {0, 1}, {1, 2}, {2, 3}]


def test_a_part_of_a_record_tells_what_was_heard_in_that_part():
    from headcount.trace.trace import Trace, heard_from

    def once_round_and_once_to_the_right():
        _dissemination()
        _only_the_right_neighbour_hears()

    operations = play(once_round_and_once_to_the_right, 4).trace.operations
    assert heard_from(Trace(tuple(ops[:4] for ops in operations))) == [{0, 1, 2, 3}] * 4
    second = heard_from(Trace(tuple(ops[4:] for ops in operations)))
    assert second == [{3, 0}, {0, 1}, {1, 2}, {2, 3}]
    # what was sent before the part says nothing of it
    last = heard_from(Trace(tuple(ops[-1:] for ops in operations)))
    assert last == [{rank} for rank in range(4)]


def test_a_message_knows_where_in_its_tensor_it_lies():
    def halves(x):
        import torch.distributed as dist

        if dist.get_rank() == 0:
            dist.send(x[4:], 1)
            dist.send(x[:4], 1)
        else:
            dist.recv(x[2:6], 0)
            dist.recv(x[6:].repeat(2), 0)

    first, second = play(halves, 2, torch.zeros(8)).trace.messages
    assert (first.taken_from, first.put_into) == (4, 2)
    assert (second.taken_from, second.put_into) == (0, 0)
    trace = play(halves, 2, torch.zeros(8)).trace
    assert trace.max_sent_elements == 8
    a, b = (op.buffer for op in trace.operations[0])
    assert a == b != 0


# Bytes that are held. ----------------------------------------------------------------


class _Keeps:
    """Makes tensors of 4, 12, 20 and 28 bytes, and keeps them in different places."""

    def __init__(self):
        self.one = torch.ones(1)
        self.named = {"three": [torch.ones(3)]}
        five = torch.ones(5)
        self.closure = lambda: five
        torch.ones(100)
        self.view = torch.ones(7)[2:3]


def test_a_storage_counts_once_wherever_it_is_held():
    held_storages = HeldStorages(list)
    with held_storages:
        kept = _Keeps()
        kept.second = kept.named["three"][0].view(3, 1)
    assert held_storages.nbytes == 4 + 12 + 20 + 28
    assert str(held_storages) == ("1 of 7 float32, 1 of 5 float32, 1 of 3 float32, 1 of 1 float32")
    del kept
    assert (held_storages.nbytes, str(held_storages)) == (0, "")


def test_the_largest_of_what_is_held_are_named_and_the_rest_counted():
    storages = HeldStorages(list)
    with storages:
        kept = [torch.ones(size) for size in (1, 2, 3, 3, 4, 5, 6, 1)]
    assert str(storages).endswith("1 of 4 float32, 2 of 3 float32, 3 smaller")
    assert storages.nbytes == 4 * sum(len(one) for one in kept)


def test_the_peak_is_what_was_held_at_most_and_when_it_grew_again():
    storages, kept = PeakStorages(list), torch.ones(4)
    with storages:
        torch.ones(100)
        kept.mul_(2)
        assert (storages.most, storages.nbytes) == (400, 16)
        kept.untyped_storage().resize_(800)
        kept.mul_(2)
    assert storages.most == 800


def test_memory_that_grows_again_counts_again():
    held_storages, parameter = HeldStorages(list), torch.ones(4)
    with held_storages:
        parameter.mul_(2)
        parameter.untyped_storage().resize_(0)
        assert held_storages.nbytes == 0
        parameter.untyped_storage().resize_(32)
    assert held_storages.nbytes == 32


def test_what_is_saved_for_backward_is_held():
    weight = torch.ones(4, requires_grad=True)
    held_storages = HeldStorages(lambda: [weight])
    with held_storages:
        loss = (weight.exp() * 2).sum()
        assert held_storages.nbytes == 16 + 4  # the exponential, and the loss
        loss.backward()
    del loss
    assert held_storages.nbytes == 16  # the gradient
    weight.grad = None
    assert held_storages.nbytes == 0


def test_parameters_do_not_count_and_what_hides_in_their_memory_does():
    parameter = torch.nn.Parameter(torch.ones(4))
    held_storages = HeldStorages(lambda: [parameter, parameter])
    with held_storages, torch.no_grad():
        parameter.mul_(2)
        assert held_storages.nbytes == 0
        parameter.data = torch.ones(10)[:4]
    assert held_storages.nbytes == 24
    assert str(held_storages) == "1 of 24 more bytes of 10 float32"


def test_numbers_are_found_in_whatever_tensor_holds_them():
    held_storages, drawn = HeldStorages(list), torch.arange(6.0)
    run, absent = drawn[2:5].numpy().tobytes(), torch.ones(3).numpy().tobytes()
    with held_storages:
        copied = torch.cat([torch.zeros(3), drawn])
    assert held_storages.found([run, absent]) == {run}
    assert held_storages.found([run], apart_from=[copied, drawn]) == set()
    copied.untyped_storage().resize_(0)  # as a gathered weight is freed that others refer to
    del drawn
    assert held_storages.found([run, absent]) == set()


class _Wrapped(torch.Tensor):
    """A tensor around another, as a DTensor is."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, (100,), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, *_):
        return _Wrapped(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _Wrapped(func(*(a.inner for a in args)))


def test_a_wrapper_counts_with_what_it_wraps():
    held_storages = HeldStorages(list)
    wrapped = _Wrapped(torch.ones(5))
    with held_storages:
        wrapped = wrapped.neg()
    assert str(held_storages) == "1 of 5 float32"


def _hoards(x):
    return HOARD.setdefault(dist.get_rank(), torch.ones(6 - dist.get_rank()))


HOARD: dict[int, torch.Tensor] = {}


def _with_held(answer, x):
    storages = HeldStorages(list)
    with storages:
        answer(x)
    dist.group.WORLD.mark(memory_mark(storages.nbytes, "after the call", str(storages)))


def test_a_limit_on_held_bytes_says_who_holds_what():
    exercise = declare(
        adapter=_with_held,
        expected=lambda c: [None] * c.n,
        world_sizes=(2,),
        limits=(point(held("bytes held by one rank", "≤", lambda c: 20)),),
    )
    verdict = judge(_hoards, exercise)
    assert verdict.diagnosis is Diagnosis.MEMORY_LIMIT
    assert "bytes held by one rank: 24 (should be at most 20)" in verdict.message
    assert "rank 0 after the call: 1 of 6 float32" in verdict.message
    assert verdict.gravest_failure.misses_point


def test_what_was_received_counts_with_its_copies_and_what_is_computed_does_not():
    storages = ReceivedStorages()
    with storages:
        own, came = torch.ones(4), torch.zeros(4)
        storages.received([came[:2]])
        assert storages.nbytes == 16
        computed, view = own.clone() + 2 * came, came.view(2, 2).T
        assert storages.nbytes == 16
        copies = [came.clone(), torch.stack([own, came]), came.double(), torch.empty(3)]
        copies[-1].copy_(view[:, 0].repeat(2)[:3])
        assert storages.nbytes == 16 + 16 + 32 + 32 + 12
        storages.waits()
    assert storages.most == 108
    assert storages.fullest.startswith("1 of 2×4 float32, 1 of 4 float64, ")
    del came, view
    assert storages.nbytes == 92
    copies.clear()
    assert (storages.nbytes, computed.sum()) == (0, 4)


def _keeps_its_requests(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    storages = ReceivedStorages()
    dist.group.WORLD.watch_receives(storages)
    with storages:
        for _ in range(4):
            came = torch.empty_like(x)
            requests = [dist.isend(x, (rank + 1) % n), dist.irecv(came, (rank - 1) % n)]
            for request in requests:
                request.wait()
            x = came
    dist.group.WORLD.mark(memory_mark(storages.most, "at most", storages.fullest))


def test_what_is_received_is_measured_as_a_rank_begins_to_wait():
    marks = play(_keeps_its_requests, 2, torch.ones(4)).trace.marks
    # what has come, and what is coming; neither private buffers, nor what old requests keep
    assert [one.text for rank in marks for one in rank] == [
        "holds 32 bytes at most: 2 of 4 float32"
    ] * 2


# What collectives send. --------------------------------------------------------------


def _collectives(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    row, part = torch.ones(5 * n), torch.ones(5)
    if rank == 0:
        dist.send(torch.ones(1000), 1)
    elif rank == 1:
        dist.recv(torch.ones(1000), 0)
    dist.reduce_scatter_tensor(part, row)
    dist.reduce_scatter(part, list(row.split(5)))
    dist.all_gather_into_tensor(row, part)
    dist.all_gather(list(row.split(5)), part)
    dist.all_reduce(torch.ones(7))
    dist.broadcast(torch.ones(100), 2)


def test_collectives_count_as_what_has_to_be_sent_for_them():
    outcome = play(_collectives, 3, torch.ones(1), allowed=None)
    # 4 times two parts of 5, 2 · 2/3 · 7 rounded down, and what one rank alone sends
    assert outcome.trace.sent_elements == [1000 + 49, 49, 49 + 100]
    case = declare().cases(1, 3)[0]
    assert sent_elements("≤", lambda c: 1049).judge(case, outcome.trace).holds
    assert not sent_elements("≤", lambda c: 1048).judge(case, outcome.trace).holds


# What a program asks torch to compile. ---------------------------------------------


def compile_everything():
    twice = torch.compile(lambda x: 2 * x)
    with_options = torch.compile(fullgraph=True, mode="max-autotune")(lambda x: x + 1)
    module = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()))
    in_place = torch.nn.Linear(2, 2)
    in_place.compile()
    in_place(torch.ones(2))
    module.extra = 3
    module.eval()
    copied = copy.deepcopy(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(torch.ones(2)).sum().backward()
    optimizer.step()
    return (
        twice(torch.ones(1)).item(),
        with_options(torch.ones(1)).item(),
        list(module.state_dict()),
        (module._orig_mod.extra, module.training, module._orig_mod[1].training, len(copied)),
        "torch._inductor" in sys.modules,
    )


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_what_is_compiled_runs_as_it_is_written_and_a_remark_says_so(start, capsys):
    names = ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert (
        list(start(compile_everything, 2)) == [(2.0, 2.0, names, (3, False, False, 2), False)] * 2
    )
    line = line_in(compile_everything, "torch.compile(lambda x: 2")
    said = capsys.readouterr().out
    assert said.startswith(f"warning: ranks 0 and 1, line {line}: {LEFT_OUT}\n")
    assert said.count(LEFT_OUT) == 1


COMPILED_BEFORE = """
import torch, torch.distributed as dist
import grader

@torch.compile(backend="eager")
def total(x):
    dist.all_reduce(x)
    return x

net = torch.compile(torch.nn.Linear(2, 2), backend="eager")

def f():
    return total(torch.ones(1)).item(), tuple(net(torch.ones(2)).shape)

if __name__ == "__main__":
    for start in (grader.run, grader.simulate):
        print(*start(f, 2))
    print(*grader.run(torch.compile(f, backend="eager"), 2))
"""


def test_what_was_compiled_before_a_run_is_not_compiled_in_it(tmp_path):
    path = tmp_path / "compiled.py"
    path.write_text(COMPILED_BEFORE)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    # it was compiled elsewhere: no line of this run has asked for it
    remark = f"warning: ranks 0 and 1: {LEFT_OUT}\n"
    assert done.stdout == f"{remark}(2.0, (2,)) (2.0, (2,))\n" * 3


def test_nothing_is_remarked_where_nothing_is_compiled(capsys):
    grader.run(lambda: torch.compiler.is_compiling(), 1)
    assert "torch.compile" not in capsys.readouterr().out


def test_a_failed_run_says_which_line_is_not_compiled():
    def broken():
        f = torch.compile(lambda x: x + 1)
        raise ValueError(f(1))

    outcome = play(broken, 1)
    line = line_in(broken, "torch.compile")
    assert outcome.trace.warnings == (f"rank 0, line {line}: {LEFT_OUT}",)

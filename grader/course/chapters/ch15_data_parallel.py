"""Chapter 15: gradients of many ranks become one."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from grader.core.compare import compare
from grader.core.verdict import Diagnosis
from grader.course.cases import Case
from grader.course.chapters.averaging import (
    among_holders,
    averaged,
    badly_divided,
    divided,
    gradient_lists,
    known,
    mean,
    means,
    named,
    summed,
    where_held,
    with_gradients,
    zeros_for_none,
)
from grader.course.chapters.bucketing import (
    NOT_THOSE_BUCKETS,
    PARAMETERS,
    buckets,
    closed_late,
    first_parameter_first,
    never_full,
    of_sizes,
    sorted_inside,
)
from grader.course.chapters.replicas import READY, average_in_rank, train_in_rank
from grader.course.chapters.training import (
    ROUNDINGS,
    STEPS,
    bucket_bytes,
    first_step_is_right,
    must_overlap,
    own_weights,
    reductions,
    reductions_in_one,
    reductions_of_each,
    reductions_of_elements,
    reductions_of_tied,
    reports,
    sizes,
    training,
)
from grader.course.exercise import Evidence, Exercise, Mistake
from grader.course.limits import (
    calls,
    combined,
    largest_call,
    messages,
    moved,
    overlaps,
    point,
    through,
)
from grader.trace.trace import Trace

# Through one rank. -----------------------------------------------------------------

parameter_server_step = Exercise(
    signature="parameter_server_step(grads: list[Tensor]) -> None",
    summary="in place; every gradient becomes its mean over ranks, through rank 0",
    inputs=gradient_lists,
    result="grads",
    expected=lambda c: [means(c)] * c.n,
    reduced=lambda c: c.n,
    magnitude=lambda c: (
        [[mean([t.abs() for t in column]) for column in zip(*c.grads, strict=True)]] * c.n
    ),
    least=combined,
    limits=(
        messages("≤", lambda c: 2 * (c.n - 1) * len(c.grads[0])),
        through(0),
    ),
    hints=(
        "Two halves: everybody's gradients reach rank 0, and then the means reach everybody. What"
        " does rank 0 do in each of them, and what do the others?",
        "For each gradient, rank 0 receives from every other rank, adds up, divides by n and sends"
        " the mean back. The other ranks send their gradient and receive into the same tensor.",
        "This is the whole answer:\n"
        "    rank, n = dist.get_rank(), dist.get_world_size()\n"
        "    for grad in grads:\n"
        "        if rank == 0:\n"
        "            heard = torch.empty_like(grad)\n"
        "            for src in range(1, n):\n"
        "                dist.recv(heard, src)\n"
        "                grad += heard\n"
        "            grad /= n\n"
        "            for dst in range(1, n):\n"
        "                dist.send(grad, dst)\n"
        "        else:\n"
        "            dist.send(grad, 0)\n"
        "            dist.recv(grad, 0)",
    ),
    mistakes=(
        Mistake(
            "The list holds new tensors, and the gradients themselves are as they were: an entry"
            " of the list is only a name for one. Work in place, as in grads[i].copy_(mean) or"
            " grads[i] /= n.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and compare([means(e.case)] * e.case.n, e.actual, e.case.n) is None
            ),
        ),
        Mistake(
            "These are the sums of all gradients: the division by n is missing.",
            when=lambda e: divided(e.failed, lambda n: 1),
        ),
        Mistake(
            "The sums are divided by n − 1. There are n gradients: rank 0 has a gradient, too.",
            when=lambda e: divided(e.failed, lambda n: max(n - 1, 1)),
        ),
        Mistake(
            "The sum of all gradients is to be divided by n. Here it is not divided at all, or by"
            " n − 1: rank 0 has a gradient, too.",
            when=lambda e: badly_divided(e.case, e.actual),
        ),
        Mistake(
            "Rank 0 has the means, and the others still have what they had: send it back.",
            gives=lambda c: [means(c), *c.grads[1:]] if c.n > 1 else None,
        ),
        Mistake(
            "The gradients that came in are as they were. An assignment to a name, or to an entry"
            " of the list, changes no tensor: write into the gradient itself, as in"
            " grad.copy_(...) or grad /= n.",
            gives=lambda c: list(c.grads),
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "It works in place and returns nothing.",
        Diagnosis.FORBIDDEN_CALL: "send and recv are all it takes: everything goes through rank 0.",
        Diagnosis.NOT_NEIGHBOUR: "In this exercise rank 0 is the server: everybody talks to rank 0"
        " and to no other rank.",
        Diagnosis.TOO_MANY_MESSAGES: "One message to the server and one back are enough for each"
        " gradient and rank.",
        Diagnosis.DEADLOCK: "The server must receive from each rank before that rank can go on to"
        " its next call. Go through the lines above: does the rank that is waited for ever make"
        " that call?",
    },
)

# Of a module. ----------------------------------------------------------------------

average_gradients = Exercise(
    signature="average_gradients(module: nn.Module) -> None",
    summary="every p.grad becomes its mean over ranks; all_reduce is allowed",
    inputs=with_gradients,
    adapter=average_in_rank,
    expected=lambda c: named(c, averaged),
    reduced=lambda c: c.n,
    magnitude=lambda c: named(
        c, lambda held, _: mean([g.abs() for g in known(held)]) if known(held) else None
    ),
    least=combined,
    allowed=frozenset({"all_reduce"}),
    hints=(
        "A collective is called by all ranks or by none. A rank that has no gradient for a"
        " parameter cannot know whether another rank has one. How can they agree?",
        "First tell each other which gradients there are: all-reduce a tensor with a 1 for each"
        " p.grad that is there, and a 0 for each that is None. Where the sum is 0, do nothing;"
        " elsewhere everybody all-reduces, with zeros in the place of None, and divides by n.",
        "This is the whole answer:\n"
        "    parameters = list(module.parameters())\n"
        "    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)\n"
        "    dist.all_reduce(there)\n"
        "    for p, count in zip(parameters, there.tolist()):\n"
        "        if count == 0:\n"
        "            continue  # None everywhere\n"
        "        if p.grad is None:\n"
        "            p.grad = torch.zeros_like(p)\n"
        "        dist.all_reduce(p.grad)\n"
        "        p.grad /= dist.get_world_size()",
    ),
    mistakes=(
        Mistake(
            "These are sums: the division by n is missing.",
            gives=lambda c: named(c, summed) if c.n > 1 else None,
        ),
        Mistake(
            "The sum is divided by the number of ranks that have the gradient. A gradient that is"
            " None counts as zero: divide by n, always.",
            gives=lambda c: named(c, among_holders),
        ),
        Mistake(
            "Ranks that had no gradient still have None. The mean belongs to every rank, or their"
            " weights will drift apart: give them p.grad = torch.zeros_like(p) first.",
            gives=lambda c: named(c, where_held),
        ),
        Mistake(
            "A gradient that is None on all ranks stays None: zeros are something else to an"
            " optimizer with momentum or weight decay.",
            gives=zeros_for_none,
        ),
        Mistake(
            "Nothing has changed: each rank still has its own gradients.",
            gives=lambda c: named(c, lambda held, rank: held[rank]) if c.n > 1 else None,
        ),
        Mistake(
            "p.grad may be None: on this rank, or on all of them.",
            when=lambda e: (
                e.says("NoneType") and any(g is None for gs in e.case.gradients for g in gs)
            ),
        ),
        Mistake(
            "Some ranks skip a collective that others are in: a rank without a gradient has to"
            " take part all the same, unless no rank has one.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.DEADLOCK, Diagnosis.SIZE_MISMATCH)
                and any(g is None for gs in e.case.gradients for g in gs)
            ),
        ),
    ),
    advice={
        Diagnosis.FORBIDDEN_CALL: "all_reduce is all it takes.",
        Diagnosis.WRONG_TYPE: "It works in place and returns nothing; p.grad stays None only where"
        " it is None on all ranks.",
    },
)

# Buckets. --------------------------------------------------------------------------


assign_buckets = Exercise(
    signature="assign_buckets(sizes: list[int], cap_bytes: int) -> list[list[int]]",
    summary="which parameters are reduced together: the last ones first",
    world_sizes=(1,),
    inputs=lambda draw: (
        draw.case(name, sizes=sizes, cap_bytes=cap) for name, sizes, cap in PARAMETERS
    ),
    expected=lambda c: [buckets(c.sizes, c.cap_bytes)] * c.n,
    hints=(
        "Backward finishes with the gradients of the last layers first. In which order do you go"
        " through the parameters, then?",
        "Keep the bucket that is being filled, and its bytes. If the next parameter would make it"
        " larger than cap_bytes, begin a new bucket with it. Does that also do the right thing with"
        " a parameter that is larger than the cap by itself?",
        "This is the whole answer:\n"
        "    buckets, filled = [], 0\n"
        "    for index in reversed(range(len(sizes))):\n"
        "        if not buckets or filled + sizes[index] > cap_bytes:\n"
        "            buckets.append([])\n"
        "            filled = 0\n"
        "        buckets[-1].append(index)\n"
        "        filled += sizes[index]\n"
        "    return buckets",
    ),
    mistakes=(
        Mistake(
            "These buckets begin with the first parameter. Its gradient is the last to be ready:"
            " begin with the last parameter.",
            gives=first_parameter_first,
        ),
        Mistake(
            "Inside a bucket, too, the last parameter comes first.",
            gives=sorted_inside,
        ),
        Mistake(
            "A bucket is closed before the cap is passed, not after it: the parameter that would"
            " pass it begins the next bucket.",
            gives=closed_late,
        ),
        Mistake(
            "A bucket may be exactly full: begin a new one only where the cap would be passed.",
            gives=never_full,
        ),
        Mistake(
            "These are the sizes of the parameters. Buckets hold their indices, not their sizes.",
            gives=of_sizes,
        ),
        Mistake(
            "There is an empty bucket. One that is larger than the cap stands alone, but it does"
            " not leave an empty bucket before it or behind it.",
            when=lambda e: bool(e.actual) and isinstance(e.actual[0], list) and [] in e.actual[0],
        ),
    ),
    advice={
        Diagnosis.WRONG_TYPE: "A list of buckets, each of them a list of indices: integers.",
        Diagnosis.WRONG_VALUE: "Which index stands at the place that the message names? Go through"
        " the sizes by hand, the last one first.",
        Diagnosis.WRONG_SHAPE: "Every parameter belongs to exactly one bucket. Go through the sizes"
        " by hand, the last one first.",
    },
)

# All together. ---------------------------------------------------------------------


def _all_reduces(e: Evidence) -> Iterator[tuple[Case, int]]:
    """How often all_reduce was called in each case that came to an end."""
    for one in e.judged:
        if one.limit is None and one.actual:
            calls = (op.kind for ops in one.trace.operations for op in ops)
            yield one.case, sum(kind == "all_reduce" for kind in calls)


def _counts(e: Evidence, asked: Callable[[Case], int]) -> bool:
    """Whether all_reduce was called as often as this says in every case, and it should not be."""
    counted = list(_all_reduces(e))
    return any(count != reductions(c) for c, count in counted) and all(
        count == asked(c) for c, count in counted
    )


def _unused_left_out(e: Evidence) -> bool:
    """Whether all-reduces are missing where some parameters are not used, and nowhere else."""
    partly = ("unused layers", "experts")
    return e.diagnosis is Diagnosis.TOO_FEW_MESSAGES and all(
        count < reductions(c) if c.architecture in partly else count == reductions(c)
        for c, count in _all_reduces(e)
    )


def _at_the_end(e: Evidence) -> bool:
    """Whether each step's all-reduces begin only when all of its gradients are ready."""
    bursts = [
        sum(a == READY and b == "all_reduce" for a, b in pairwise(_timeline(e.trace, rank)))
        for rank in e.case.ranks
    ]
    return max(bursts) <= STEPS


def _timeline(trace: Trace, rank: int) -> list[str]:
    """A rank's all-reduces, and its gradients as they were ready, in order of time."""
    seen = [(mark.time, mark.text) for mark in trace.marks[rank] if mark.text == READY]
    seen += [(op.posted, op.kind) for op in trace.operations[rank] if op.kind == "all_reduce"]
    return [what for _, what in sorted(seen)]


def _asynchronous(e: Evidence) -> bool:
    return e.written(r"async_op=True|all_reduce\(.*, True\)")


def _reduces(e: Evidence) -> bool:
    """Whether a gradient was all-reduced in any case."""
    calls = (op.kind for one in e.judged for ops in one.trace.operations for op in ops)
    return "all_reduce" in calls


BucketedDDP = Exercise(
    signature="BucketedDDP(module: nn.Module, bucket_bytes: int)",
    summary="gradients are averaged bucket by bucket, while backward still runs",
    inputs=training,
    adapter=train_in_rank,
    expected=lambda c: reports(c, lambda gs, _: mean(gs)),
    reduced=lambda c: ROUNDINGS,
    magnitude=lambda c: list(sizes(c)),
    least=lambda c, expected: moved(c, [report["weights"] for report in expected]),
    allowed=frozenset({"all_reduce", "broadcast"}),
    limits=(
        point(calls({"all_reduce"}, "=", reductions)),
        point(largest_call("all_reduce", "=", lambda c: max(bucket_bytes(c)))),
        point(overlaps("all_reduce", READY, must_overlap)),
    ),
    # experts are the case in which buckets are complete in another order on each rank
    point=lambda c, diagnosis: (
        c.architecture == "experts"
        and diagnosis
        in (
            Diagnosis.DEADLOCK,
            Diagnosis.ORDER_MISMATCH,
            Diagnosis.SIZE_MISMATCH,
            Diagnosis.WRONG_GRADIENT,
        )
    ),
    points=3.0,
    hints=(
        "Four things happen: at construction everybody gets rank 0's weights; while backward runs,"
        " a hook is told of each gradient that is ready; the gradient that completes a bucket"
        " starts that bucket's all-reduce; and the last call waits for all of them. Which of the"
        " four is missing?",
        "register_post_accumulate_grad_hook calls you when p.grad is there. Count down the"
        " gradients that each bucket still waits for; at 0 flatten them into one tensor and start"
        " dist.all_reduce(flat, async_op=True). finish_gradient_synchronization waits, divides by"
        " n and copies the parts back. What starts a bucket whose parameters are not all used?",
        "The order in which buckets start must be the same on all ranks: start bucket k only when"
        " bucket k − 1 has been started, and in finish_gradient_synchronization start all that are"
        " left, with zeros for gradients that are None. At its end set the counts back for the next"
        " step.",
        "This is the whole answer:\n"
        "    class BucketedDDP(nn.Module):\n"
        "        def __init__(self, module, bucket_bytes):\n"
        "            super().__init__()\n"
        "            self.module = module\n"
        "            for p in module.parameters():\n"
        "                dist.broadcast(p.data, 0)\n"
        "            trained = [p for p in module.parameters() if p.requires_grad]\n"
        "            sizes = [p.numel() * p.element_size() for p in trained]\n"
        "            indices = assign_buckets(sizes, bucket_bytes)\n"
        "            self.buckets = [[trained[i] for i in bucket] for bucket in indices]\n"
        "            for k, bucket in enumerate(self.buckets):\n"
        "                for p in bucket:\n"
        "                    p.register_post_accumulate_grad_hook(lambda _, k=k: self._ready(k))\n"
        "            self._begin()\n"
        "\n"
        "        def _begin(self):\n"
        "            self.missing = [len(bucket) for bucket in self.buckets]\n"
        "            self.in_flight = []\n"
        "\n"
        "        def _ready(self, k):\n"
        "            self.missing[k] -= 1\n"
        "            while (next := len(self.in_flight)) < len(self.buckets):\n"
        "                if self.missing[next] > 0:\n"
        "                    break\n"
        "                self._start()\n"
        "\n"
        "        def _start(self):\n"
        "            bucket = self.buckets[len(self.in_flight)]\n"
        "            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]\n"
        "            flat = torch.cat([grad.flatten() for grad in grads])\n"
        "            self.in_flight.append((flat, dist.all_reduce(flat, async_op=True)))\n"
        "\n"
        "        def forward(self, *args, **kwargs):\n"
        "            return self.module(*args, **kwargs)\n"
        "\n"
        "        def finish_gradient_synchronization(self):\n"
        "            while len(self.in_flight) < len(self.buckets):\n"
        "                self._start()\n"
        "            for bucket, (flat, request) in zip(self.buckets, self.in_flight):\n"
        "                request.wait()\n"
        "                flat /= dist.get_world_size()\n"
        "                for p, mean in zip(bucket, flat.split([p.numel() for p in bucket])):\n"
        "                    p.grad = mean.view_as(p)\n"
        "            self._begin()",
    ),
    mistakes=(
        Mistake(
            "Each rank has begun with its own weights. The constructor has to broadcast rank 0's.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_GRADIENT)
                and own_weights(e.case, e.actual)
            ),
        ),
        Mistake(
            "BucketedDDP is an nn.Module: class BucketedDDP(nn.Module), with super().__init__()"
            " first, and the wrapped module as an attribute.",
            when=lambda e: any(isinstance(a, dict) and not a["is a module"] for a in e.actual),
        ),
        Mistake(
            "A frozen parameter takes no hook and gets no gradient: leave out every one whose"
            " requires_grad is false.",
            when=lambda e: (
                e.case.architecture == "frozen parameters"
                and (e.says("doesn't require gradient") or e.says("NoneType"))
            ),
        ),
        Mistake(
            "The gradients are sums over the ranks: divide by the number of ranks, so that they are"
            " those of the mean loss.",
            gives=lambda c: reports(c, lambda gs, _: mean(gs, 1)) if c.n > 1 else None,
        ),
        Mistake(
            "Each rank keeps its own gradients: no all_reduce was called. Is a hook registered for"
            " every parameter, and does it start its bucket?",
            when=lambda e: (
                e.diagnosis in (Diagnosis.WRONG_GRADIENT, Diagnosis.TOO_FEW_MESSAGES)
                and not _reduces(e)
            ),
        ),
        Mistake(
            "Each rank still has its own gradients. What all_reduce has made of the bucket has to"
            " be copied back into every p.grad.",
            gives=lambda c: reports(c, lambda gs, r: gs[r]) if c.n > 1 else None,
            when=lambda e: _reduces(e),
        ),
        Mistake(
            "The first step is right, a later one is not. After finish_gradient_synchronization"
            " everything must be as it was before the first backward: counts, requests, buffers.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_GRADIENT
                and bool(e.actual)
                and first_step_is_right(e.case, e.actual)
            ),
        ),
        Mistake(
            "Where ranks use different parameters, their buckets are complete in different orders;"
            " but all ranks must call their all-reduces in the same order. Start bucket k only when"
            " bucket k − 1 has been started, and the rest in finish_gradient_synchronization.",
            # layers that no rank uses are right, so it is where ranks differ that it goes wrong
            when=lambda e: (
                e.case.architecture == "experts"
                and e.diagnosis
                in (Diagnosis.DEADLOCK, Diagnosis.SIZE_MISMATCH, Diagnosis.WRONG_GRADIENT)
                and all(one.case.architecture != "unused layers" for one in e.failed)
            ),
        ),
        Mistake(
            "A parameter that no rank uses gets no gradient, and its hook is never called: a bucket"
            " that waits for it must be started in finish_gradient_synchronization, with zeros in"
            " its place.",
            when=lambda e: (
                e.case.architecture in ("experts", "unused layers")
                and (e.diagnosis is Diagnosis.WRONG_GRADIENT or e.says("NoneType"))
            ),
        ),
        Mistake(
            "Without async_op=True, dist.all_reduce returns only when the sum is there, and"
            " backward stands still until then. With it, a request comes back at once: keep it, and"
            " wait for it in finish_gradient_synchronization.",
            when=lambda e: e.diagnosis is Diagnosis.NO_OVERLAP and not _asynchronous(e),
        ),
        Mistake(
            "All of the all-reduces begin when the last gradient is ready, so nothing is left to"
            " compute beside them. Start a bucket's all-reduce in the hook of the gradient that"
            " completes it.",
            when=lambda e: (
                e.diagnosis is Diagnosis.NO_OVERLAP and _asynchronous(e) and _at_the_end(e)
            ),
        ),
        Mistake(
            "The all-reduces begin early enough, and are waited for before the next gradient is"
            " computed. Keep the requests, and wait for them in finish_gradient_synchronization"
            " only.",
            when=lambda e: (
                e.diagnosis is Diagnosis.NO_OVERLAP and _asynchronous(e) and not _at_the_end(e)
            ),
        ),
        Mistake(
            "There are as many buckets as if sizes were counted in elements: bucket_bytes are"
            " bytes, and so is a size, p.numel() * p.element_size().",
            when=lambda e: _counts(e, reductions_of_elements),
        ),
        Mistake(
            "Everything goes in one all-reduce, whatever bucket_bytes says: give it to"
            " assign_buckets as the cap, and call all_reduce once for each bucket.",
            when=lambda e: _counts(e, reductions_in_one),
        ),
        Mistake(
            "There is an all-reduce for every parameter: flatten the gradients of a bucket into one"
            " tensor, torch.cat([g.flatten() for g in ...]), and reduce that.",
            when=lambda e: _counts(e, reductions_of_each),
        ),
        Mistake(
            "Tied weights are one parameter, and here they are reduced as often as they are used:"
            " module.parameters() has each of them once.",
            when=lambda e: _counts(e, reductions_of_tied),
        ),
        Mistake(
            "All-reduces are missing only where some parameters are not used. Their gradients are"
            " None and their hooks are never called: start the buckets that are left in"
            " finish_gradient_synchronization, with zeros for what is None.",
            when=_unused_left_out,
        ),
    ),
    advice={
        **NOT_THOSE_BUCKETS,
        Diagnosis.NO_OVERLAP: "While backward computes the next gradients, an all-reduce should be"
        " under way: start it in the hook with async_op=True, and wait for it in"
        " finish_gradient_synchronization only.",
        Diagnosis.FORBIDDEN_CALL: "all_reduce and broadcast are all it takes. torch's own"
        " DistributedDataParallel is what you are writing.",
        Diagnosis.UNWAITED_REQUEST: "Keep every request that all_reduce returns, and wait for all"
        " of them in finish_gradient_synchronization.",
    },
)

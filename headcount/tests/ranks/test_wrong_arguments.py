"""Calls whose arguments are wrong or odd, which real and simulated ranks answer alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from headcount.core.packing import live_program
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import SimulationProcess

# The calls. -------------------------------------------------------------------------
#
# A call is a text, in which x(2, 3) is a new tensor of that shape whose numbers tell the ranks
# apart, r the rank, and {name} an argument that is given each of several forms in turn.


def shapes(*right):
    """Tensors of the right number of elements in other shapes, and of other numbers."""
    first, *rest = right
    every = [right, (math.prod(right),), (1, *right), (*right, 1), (*rest, first), (0,), ()]
    every += [(first + 1, *rest), (first - 1, *rest), (2 * first, *rest)]
    return [f"x{shape}" for shape in dict.fromkeys(every)]


DTYPES = ["double", "half", "bfloat16", "long", "int", "short", "int8", "byte", "bool", "cfloat"]


def tensors(*right):
    """What may be given in the place of a tensor of a shape; the right one is first."""
    good = f"x{right}"
    padded = f"x{(*right, 2)}"
    return [
        *shapes(*right),
        *(f"{good}.{dtype}()" for dtype in DTYPES),
        *(f"{good}.to(torch.{dtype})" for dtype in ("uint16", "float8_e4m3fn")),
        f"{padded}[..., 0]",
        f"x{right[::-1]}.permute(*range({len(right)})[::-1])",
        f"x(1).expand{right}",
        f"{good}.to_sparse()",
        f"torch.empty({right}, device='meta')",
        f"{good}.requires_grad_()",
        f"{good}.requires_grad_() * 2",
        f"torch.nn.Parameter({good})",
        *("None", "3", "[1.0]", f"[{good}]", f"{good}.numpy()"),
    ]


def lists(*right):
    """The same for a list of two tensors of a shape."""
    good = f"x{right}"
    either = [one for one in tensors(*right) if one != good]
    return [
        f"[{good}, {good}]",
        *(f"({good}, {good})", f"[{good}]", f"[{good}, {good}, {good}]", "[]", "None", "3"),
        *(f"x{(2, *right)}", f"list(x{(2, *right)})", f"[[{good}, {good}]]", f"[{good}] * 2"),
        f"list(x{(*right, 2)}.unbind(-1))",
        *(f"[{good}, {other}]" for other in either),
        *(f"[{other}, {good}]" for other in shapes(*right)[1:]),
        *(f"[{other}, {other}]" for other in either if other.startswith("x")),
    ]


ROOTS = ["0", "1", "2", "-1", "None", "True", "1.0", "'0'", "torch.tensor(0)"]
PEERS = ["1 - r", "r", "2", "-1", "True", "1.0 - r", "'0'", "[0]"]
TAGS = ["0", "1", "-1", "2**31", "0.0", "None", "r"]
OPS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
GROUPS = [
    *("None", "dist.new_group([0])", "dist.new_group([1])", "dist.new_group([0, 1])"),
    *("dist.GroupMember.NON_GROUP_MEMBER", "dist.group.WORLD", "3"),
]
SPLITS = [
    *("None", "[2, 2]", "[]", "[1, 3]", "[2, 3]", "[1, 1, 2]", "[4]", "[5, -1]", "(2, 2)"),
    *("torch.tensor([2, 2])", "[2.0, 2.0]", "[0, 4]"),
]
ONE, BOTH = tensors(2, 3), tensors(4, 3)
EACH = lists(2, 3)
REDUCTIONS = [f"dist.ReduceOp.{op}" for op in OPS] + ["dist._make_nccl_premul_sum(2.0)"]
REDUCED = [f"x(4).{dtype}()" for dtype in ("float", *DTYPES)]

#: By name: the call, and the forms of each of its arguments, of which the first is right.
CALLS = {
    "all_reduce": ("dist.all_reduce({t}, group={g})", {"t": ONE, "g": GROUPS}),
    "reduce": ("dist.reduce({t}, {d}, group={g})", {"t": ONE, "d": ROOTS, "g": GROUPS}),
    "broadcast": ("dist.broadcast({t}, {s}, group={g})", {"t": ONE, "s": ROOTS, "g": GROUPS}),
    "all_gather": ("dist.all_gather({l}, {t}, group={g})", {"l": EACH, "t": ONE, "g": GROUPS}),
    "gather": (
        "dist.gather({t}, {l} if r == 0 else {n}, {d}, group={g})",
        {"t": ONE, "l": EACH, "n": ["None", "[x(2, 3)] * 2"], "d": ROOTS, "g": GROUPS},
    ),
    "scatter": (
        "dist.scatter({t}, {l} if r == 0 else {n}, {s}, group={g})",
        {"t": ONE, "l": EACH, "n": ["None", "[x(2, 3)] * 2"], "s": ROOTS, "g": GROUPS},
    ),
    "all_gather_into_tensor": (
        "dist.all_gather_into_tensor({o}, {t}, group={g})",
        {"o": [*BOTH, "x(2, 2, 3)", "x(2, 6)"], "t": ONE, "g": GROUPS},
    ),
    "all_gather_into_tensor of vectors": (
        "dist.all_gather_into_tensor({o}, {t})",
        {"o": shapes(4), "t": shapes(2)},
    ),
    "reduce_scatter_tensor": (
        "dist.reduce_scatter_tensor({t}, {i}, group={g})",
        {"t": ONE, "i": [*BOTH, "x(2, 2, 3)", "x(2, 6)"], "g": GROUPS},
    ),
    "reduce_scatter": (
        "dist.reduce_scatter({t}, {l}, group={g})",
        {"t": ONE, "l": EACH, "g": GROUPS},
    ),
    "reduce_scatter of uneven shares": (
        "dist.reduce_scatter({t}, {l})",
        {
            "t": ["x(1 + r)", "x(2)", "x(1 + r, 1)", "x(1)"],
            "l": ["[x(1), x(2)]", "[x(2), x(1)]", "[x(1, 1), x(2)]", "[x(1), x(1, 2)]"],
        },
    ),
    "all_to_all": ("dist.all_to_all({o}, {i}, group={g})", {"o": EACH, "i": EACH, "g": GROUPS}),
    "all_to_all_single": (
        "dist.all_to_all_single({o}, {i}, {p}, {q}, group={g})",
        {"o": BOTH, "i": BOTH, "p": SPLITS, "q": SPLITS, "g": GROUPS},
    ),
    "barriers": ("dist.{f}(group={g})", {"f": ["barrier", "monitored_barrier"], "g": GROUPS}),
    "reductions of all_reduce": ("dist.all_reduce({t}, {op})", {"t": REDUCED, "op": REDUCTIONS}),
    "reductions of reduce": ("dist.reduce({t}, 0, {op})", {"t": REDUCED, "op": REDUCTIONS}),
    "reductions of reduce_scatter": (
        "dist.reduce_scatter_tensor({t}[:2].clone(), {t}, {op})",
        {"t": REDUCED, "op": REDUCTIONS},
    ),
    "objects": (
        "dist.broadcast_object_list({l}, {s}, group={g})",
        {"l": ["[r, r]", "(r, r)", "[]", "None"], "s": ROOTS, "g": GROUPS},
    ),
    "gathered objects": (
        "dist.all_gather_object({l}, r, group={g})",
        {"l": ["[None, None]", "[None]", "[]", "None", "(None, None)"], "g": GROUPS},
    ),
    "scattered objects": (
        "dist.scatter_object_list({o}, {i}, 0)",
        {"o": ["[None]", "[]", "None"], "i": ["[1, 2]", "[1]", "[1, 2, 3]", "None"]},
    ),
    "groups": (
        "dist.new_group({m})",
        {"m": ["None", "[0]", "[0, 0]", "[2]", "[-1]", "(0, 1)", "[]", "[0.0]", "'01'", "[1, 0]"]},
    ),
    "messages": (
        "dist.send({t}, {p}, tag={a}, group={g}) if r else dist.recv({b}, {q}, tag={a}, group={g})",
        {"t": ONE, "b": ONE, "p": PEERS, "q": PEERS, "a": TAGS, "g": GROUPS},
    ),
    "messages in flight": (
        "dist.isend({t}, {p}, tag={a}).wait() if r else dist.irecv({b}, {q}, tag={a}).wait()",
        {"t": ONE, "b": ONE, "p": PEERS, "q": PEERS, "a": TAGS},
    ),
    "batches": (
        "[one.wait() for one in dist.batch_isend_irecv({l})]",
        {
            "l": [
                f"[dist.P2POp(dist.isend, {t}, {p}), dist.P2POp(dist.irecv, x(2, 3), 1 - r)]"
                for t, p in [*((t, PEERS[0]) for t in ONE), *((ONE[0], p) for p in PEERS)]
            ]
            + ["[]", "None", "[x(2, 3)]", "[dist.P2POp(dist.send, x(2), 1 - r)]"],
        },
    ),
}


def variants(name) -> Iterator[str]:
    """Yield calls in which one argument is wrong on both ranks, or on rank 0 alone.

    Where both arguments of a call are tensors, they are also wrong in the same way together.
    """
    call, arguments = CALLS[name]
    right = {slot: forms[0] for slot, forms in arguments.items()}
    for slot, forms in arguments.items():
        for form in forms:
            yield call.format(**right | {slot: form})
            yield call.format(**right | {slot: f"({form} if r == 0 else {forms[0]})"})
    if name.startswith("reductions"):
        for form in arguments["t"]:
            for op in arguments["op"]:
                yield call.format(t=form, op=op)
        return
    first, second = list(arguments.values())[:2] if len(arguments) > 1 else ([], [])
    if "x" in first[:1] + second[:1] or name == "all_to_all_single":
        return
    for one, other in zip(first, second, strict=False):
        yield call.format(**right | dict(zip(arguments, (one, other), strict=False)))


# Both answers. ----------------------------------------------------------------------


def answer(text):
    """What the call leaves in its tensors."""
    rank, made = dist.get_rank(), []

    def x(*shape):
        first = 1 + 10 * rank
        made.append(torch.arange(first, first + math.prod(shape)).view(shape).float())
        return made[-1]

    eval(text, {"torch": torch, "dist": dist, "x": x, "r": rank})
    # gloo uses the tensors of the ranks that are not the root, and mixes orders of elements
    if "dist.reduce(" in text or ("permute" in text and "reduce_scatter" in text):
        return None
    return [tensor.tolist() for tensor in made]


def told(outcome):
    """What a run has come to, without addresses in memory."""
    failure = outcome.failure
    if failure is None:
        return [result.value for result in outcome.results]
    message = re.sub(r"0x\w+", "0x…", failure.message)
    return failure.diagnosis, failure.rank, failure.site, message


class Both:
    """Real ranks, and simulated ones with a record of what they call and without."""

    def __init__(self):
        self.launcher, self.program = default_launcher(), live_program(answer)
        self.world = None
        self.process = None

    def told(self, text):
        job = Job("answer", ((text,),) * 2, allowed=None, seconds=30.0)
        if self.world is None:
            self.world = ProcessWorld(self.launcher, 2, self.program)
        real = self.world.run(job)
        if real.failure is not None:
            self.world.close()
            self.world = None
        simulated = []
        for recorded in (10_000, 0):
            if self.process is None or not self.process.usable:
                self.end_process()
                self.process = SimulationProcess(self.launcher)
            run = self.process.begin(self.program, job, Flat(), recorded=recorded)
            simulated.append(told(run()))
        return told(real), *simulated

    def end_process(self):
        if self.process is not None:
            self.process.close()
            self.process = None

    def close(self):
        if self.world is not None:
            self.world.close()
        self.end_process()
        self.launcher.settle()


@pytest.fixture
def both():
    found = Both()
    yield found
    found.close()


def differences(both, texts):
    """The calls of which the three do not say the same, with what they say, as one text."""
    found = []
    for text in dict.fromkeys(texts):
        said = both.told(text)
        if any(one != said[0] for one in said):
            found.append("\n    ".join(map(str, (text, *said))))
    return "\n".join(found)


#: Of the calls, those whose every wrong argument CI tries: half a minute each.
IN_CI = ("all_gather_into_tensor", "all_to_all_single", "messages")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.exhaustive if one in IN_CI else pytest.mark.nightly)
        for one in CALLS
    ],
)
def test_real_and_simulated_ranks_say_the_same_of_every_wrong_argument(name, both):
    assert differences(both, variants(name)) == ""


FEW = [
    "dist.all_gather_into_tensor(x(8), x(2, 2))",
    "dist.reduce_scatter_tensor(x(2, 2), x(8))",
    "dist.all_gather([x(4), x(4)], x(2, 2))",
    "dist.all_to_all([x(4), x(4)], [x(2, 2), x(2, 2)])",
    "dist.all_reduce(x(2, 2, 2)[..., 0])",
    "dist.all_reduce(x(3, 2).t())",
    "dist.all_gather_into_tensor(x(4, 2)[:, 0], x(2, 2)[:, 0])",
    "dist.reduce_scatter_tensor(x(2).cfloat(), x(4).cfloat())",
    "dist.reduce_scatter_tensor(x(2).requires_grad_(), x(4))",
    "dist.all_reduce(x(2), dist.ReduceOp.BAND)",
    "dist.all_reduce(x(2).short())",
    "dist.all_gather([x(2)] * 2, x(2))",
    "dist.all_gather([x(2), torch.empty(2, device='meta')], x(2))",
    "dist.new_group([0] if r == 0 else None)",
    "dist.send(x(2), 0, tag=0.0) if r else dist.recv(x(2), 1, tag=0.0)",
]


@pytest.mark.parametrize("text", FEW)
def test_real_and_simulated_ranks_say_the_same(text, both):
    assert differences(both, [text]) == ""

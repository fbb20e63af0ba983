"""What an attack attempts: a module's source that defines ``payload``, without a place or a time.

Every submission of ``tests/hostile`` is one; others send drawn messages, return drawn values, or
get at the other ranks' values by a road that is none.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tools.attack import forgeries
from tools.attacks import HOSTILE, Attack, attacks

__all__ = ["FAMILIES", "Payload", "draw_payload"]


@dataclass(frozen=True)
class Payload:
    """Something to attempt.

    Attributes:
        name: its family and its name.
        source: defines ``payload``, and everything that it needs.
        exercise: the exercise whose arguments it takes; empty if it takes none.
        parameters: the names of these arguments.
        answers: whether it returns or leaves a result that may be right, so that it is only worth
            trying instead of an answer to ``exercise``.
    """

    name: str
    source: str
    exercise: str = ""
    parameters: tuple[str, ...] = ()
    answers: bool = False

    @property
    def family(self) -> str:
        """What its results are counted under."""
        return self.name.partition("/")[0]


# Known attacks. -------------------------------------------------------------------


def _known() -> dict[str, list[Attack]]:
    """Return the known attacks by family; controls, and those that earn a part, are left out."""
    found: dict[str, list[Attack]] = {}
    for attack in attacks():
        # a class would have to be called in a way of its own
        function = f"\ndef {attack.exercise}(".encode() in attack.source
        if attack.verdict == "failed" and not attack.score and function:
            found.setdefault(attack.path.parent.name, []).append(attack)
    return found


_KNOWN = _known()


def _from_fixture(family: str, draw: random.Random) -> Payload:
    attack = draw.choice(_KNOWN[family])
    # the exercise's name, but neither an attribute of torch's nor a text
    name = re.compile(rf"(?<![\w.\"'/]){attack.exercise}\b")
    source = name.sub("payload", attack.source.decode())
    (function,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "payload"
    ]
    parameters = tuple(one.arg for one in function.args.args)
    return Payload(f"{family}/{attack.path.stem}", source, attack.exercise, parameters)


# Messages. ------------------------------------------------------------------------

#: How bytes may reach the judge, or a peer: an expression of a descriptor, and how to write to it.
_DESCRIPTORS = {
    "control": "control()",
    "peer": "next(sockets(socket.AF_INET), control())",
    "output": "open(1, 'wb', buffering=0, closefd=False)",
    "faults": "pipes()",
}
_WRITES = {
    "sendall": "to.sendall(data)",
    "in one piece": "in_one_piece(to, data)",
    "one by one": "[to.send(data[i : i + 1]) for i in range(min(len(data), 5000))]",
    "sendmsg": "to.sendmsg([data[:7], data[7:]])",
    "half": "to.sendall(data[: len(data) // 2])",
    "urgent": "to.send(data[:1], socket.MSG_OOB), to.sendall(data)",
    "urgent after": "to.sendall(data), to.send(b'!', socket.MSG_OOB)",
    "shut": "to.sendall(data), to.shutdown(socket.SHUT_WR)",
    "with a descriptor": "socket.send_fds(to, [data], [0, 1, 2])",
}

#: What the rank does then.
_AFTERWARDS = {
    "go on": "pass",
    "wait": "time.sleep(1000)",
    "exit": "os._exit(0)",
    "raise": "raise ValueError('afterwards')",
    "read slowly": "[(control().recv(1 << 18), time.sleep(1.3)) for _ in range(1000)]",
    "stop listening": "control().shutdown(socket.SHUT_RD), time.sleep(1000)",
}

_HELPERS = '''
def in_one_piece(to, data):
    """Write while no other thread of the rank writes into the middle of it."""
    import gc

    from headcount.core.wire import FrameWriter

    (writer,) = [one for one in gc.get_objects() if isinstance(one, FrameWriter)]
    with writer._lock:
        to.sendall(data)


class Pipe:
    """A pipe to the judge, which is written to like a socket."""

    def __init__(self, fd):
        self.fd = fd

    def sendall(self, data):
        os.write(self.fd, data)

    send = sendall


def pipes():
    found = [fd for fd in range(256) if is_pipe(fd)]
    return Pipe(found[-1])


def is_pipe(fd):
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False
'''


def _sending(kind: str, drawn: Callable[[random.Random], str], draw: random.Random) -> Payload:
    descriptor = draw.choice(["control"] * 8 + list(_DESCRIPTORS))
    write = draw.choice(["in one piece"] * 8 + list(_WRITES))
    if descriptor in ("output", "faults"):
        write = "sendall"
    afterwards = draw.choice(list(_AFTERWARDS))
    to = _DESCRIPTORS[descriptor].replace("open(1, 'wb', buffering=0, closefd=False)", "Pipe(1)")
    messages = drawn(draw)
    body = f"""{forgeries.PRELUDE}
import time

{_HELPERS}

def payload():
    data, to = framed({"*" if kind == "floods" else ""}{messages}), {to}
    {_WRITES[write]}
    {_AFTERWARDS[afterwards]}
"""
    part = (HOSTILE / "_control.py").read_text(encoding="utf-8")
    return Payload(f"{kind}/{descriptor}, {write}, {afterwards}", part + body)


# Values that a function returns, without a forged byte. ---------------------------

_RETURNED = (
    "torch.zeros(1).expand(1 << 14, 1 << 14)",
    "torch.zeros(1, dtype=torch.int64).expand(1 << 20, 1 << 20)",
    "torch.zeros(1 << 40, 0)",
    "torch.empty(8, device='meta')",
    "torch.full((3,), float('nan'))",
    "{k * PRIME for k in range(1, 60_000)}",
    "dict.fromkeys(k * PRIME for k in range(1, 60_000))",
    "{float('nan') for _ in range(1000)}",
    "1 << 13_999",
    "-(1 << 13_999)",
    "float('inf')",
    "'x ' * 49_000",
    "['x ' * 49_000] * 40",
    "[[]] * 99_000",
    "[torch.zeros(0)] * 99_000",
    "{'result': torch.zeros(1).expand(1 << 14, 1 << 14), 'x' * 90_000: None}",
    "type('A' * 100_000, (), {})()",
    "type('T', (tuple,), {'__iter__': lambda self: iter(int, 1)})((1, 2))",
    "type('D', (dict,), {'items': lambda self: [({}, 1)]})()",
    "torch.device('privateuseone')",
    "torch.float4_e2m1fn_x2 if hasattr(torch, 'float4_e2m1fn_x2') else torch.bits8",
    "torch.zeros(4, dtype=torch.uint8).view(torch.bits8)",
    "torch.zeros(2, dtype=torch.complex64).conj()",
    "torch.zeros(2, requires_grad=True).expand(1 << 20, 2)",
    "torch.nested.nested_tensor([torch.zeros(2)])",
    "torch.zeros(3)[:, None, None, None, None].expand(3, 1, 1 << 12, 1 << 12, 1)",
    "\"\\ud800\\x00\\x1b]0;x\\x07</script>=cmd|'/C calc'!A0\"",
)


def _returning(draw: random.Random) -> Payload:
    chosen = draw.choice(_RETURNED)
    around = draw.choice(("{}", "[{}, {}]", "({}, None)", "{{'result': {}}}", "[[{}]]"))
    text = around.format(chosen, chosen)
    source = f"{forgeries.PRELUDE}\n\ndef payload():\n    return {text}\n"
    return Payload(f"values/{text[:60]}", source)


# Roads: the values of all ranks without the messages that are asked for. -----------

_ROADS = {
    "private messages": """
    inner, came = c10d._get_default_group()._inner, [torch.empty_like(x) for _ in range(n)]
    sent = [inner.send([x.contiguous()], peer, 9) for peer in range(n) if peer != rank]
    for peer in range(n):
        if peer != rank:
            inner.recv([came[peer]], peer, 9).wait()
    [one.wait() for one in sent]
    came[rank].copy_(x)
""",
    "private collective": """
    came = [torch.empty_like(x) for _ in range(n)]
    c10d._get_default_group()._inner.allgather([came], [x.contiguous()]).wait()
""",
    "functional collective": """
    import torch.distributed._functional_collectives as functional
    whole = functional.all_gather_tensor(x.contiguous().view(-1), 0, list(range(n)))
    came = [one.view_as(x) for one in torch.as_tensor(whole).chunk(n)]
""",
    "silenced recorder": """
    import gc
    from headcount.rank.recorder import Recorder
    for one in gc.get_objects():
        if isinstance(one, Recorder):
            one.emit = lambda *_: None
            one.allowed = None
    came = [torch.empty_like(x) for _ in range(n)]
    dist.all_gather(came, x.contiguous())
""",
    "store": """
    import pickle
    store = c10d._get_default_store()
    global TURN
    TURN += 1
    store.set(f"{TURN} {rank}", pickle.dumps(x.clone()))
    came = [pickle.loads(store.get(f"{TURN} {peer}")) for peer in range(n)]
""",
    "objects": """
    came = [None] * n
    dist.all_gather_object(came, x.clone())
""",
    "datagrams": """
    import pickle, socket, time
    global TURN
    TURN += 1
    mine = socket.socket(FAMILY, socket.SOCK_DGRAM)
    mine.bind((HOST, 21000 + 100 * n + rank))
    mine.settimeout(0.01)
    found, until = {rank: x.clone()}, time.monotonic() + 1
    while time.monotonic() < until and len(found) < n:
        for peer in range(n):
            mine.sendto(pickle.dumps((rank, x.clone())), (HOST, 21000 + 100 * n + peer))
        try:
            found.update([pickle.loads(mine.recv(1 << 16))])
        except OSError:
            continue
    came = [found[peer] for peer in range(n)]
""",
    "netlink": """
    import pickle, socket, time
    global LINK
    LINK = LINK or socket.socket(16, socket.SOCK_RAW, 2)
    if not LINK.getsockname()[0]:
        LINK.bind((4000 + 10 * n + rank, 0))
    LINK.settimeout(0.01)
    found, until = {rank: x.clone()}, time.monotonic() + 1
    while time.monotonic() < until and len(found) < n:
        for peer in range(n):
            try:
                LINK.sendto(pickle.dumps((rank, x.clone())), (4000 + 10 * n + peer, 0))
            except OSError:
                continue
        try:
            found.update([pickle.loads(LINK.recv(1 << 16))])
        except OSError:
            continue
    came = [found[peer] for peer in range(n)]
""",
    "the judge's arguments": """
    import gc
    found = [one for one in gc.get_objects() if isinstance(one, torch.Tensor)]
    came = [one.clone() for one in found if one.shape == x.shape and one.dtype == x.dtype][:n]
""",
}  # fmt: skip

_TOTAL = """
def total(parts, op):
    result = parts[0].clone()
    names = {"MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul}
    name = str(op).split(".")[-1].upper()
    for part in parts[1:]:
        result = names.get(name, torch.add)(result, part)
    return result / len(parts) if name == "AVG" else result
"""

#: Makes the bytes that the values would have made, inside the nodes, for the exercise with nodes.
_JUNK = """
GROUPS = {}


def junk(x, each):
    rank, n = dist.get_rank(), dist.get_world_size()
    if each == 1:
        dist.all_reduce(x.clone())
    for first in range(0, n, each) if each > 1 else ():
        if (n, each, first) not in GROUPS:
            GROUPS[n, each, first] = dist.new_group(list(range(first, first + each)))
        if first <= rank < first + each:
            parts = [torch.empty_like(x) for _ in range(each)]
            dist.all_gather(parts, x.contiguous(), group=GROUPS[n, each, first])
"""

#: How an exercise is answered by who knows what all ranks hold: parameters, and what to return.
_SOLVED = {
    "all_gather": ("x", "everyone(x)"),
    "ring_all_gather": ("x", "everyone(x)"),
    "broadcast": ("x, src", "x.copy_(everyone(x)[src]) and None"),
    "tree_broadcast": ("x, src", "x.copy_(everyone(x)[src]) and None"),
    "exchange": ("x, peer", "everyone(x)[peer]"),
    "shift": ("x, k", "everyone(x)[(rank() - k) % size()]"),
    "gather": ("x, dst", "(lambda all: all if rank() == dst else None)(everyone(x))"),
    "all_reduce_rooted": ("x, op", "into(x, total(everyone(x), op))"),
    "all_reduce_sharded": ("x, op", "into(x, total(everyone(x), op))"),
    "ring_all_reduce": ("x, op", "into(x, total(everyone(x), op))"),
    "recursive_doubling_all_reduce": ("x, op", "into(x, total(everyone(x), op))"),
    "halving_doubling_all_reduce": ("x, op", "into(x, total(everyone(x), op))"),
    "hierarchical_all_reduce": (
        "x, op, ranks_per_node",
        "into(x, total(everyone(x), op)) or junk(x, ranks_per_node)",
    ),
    "unblock_ring": ("x", "everyone(x)[(rank() - 1) % size()]"),
    "all_to_all": ("chunks", "[one[rank()] for one in everyone(torch.stack(chunks))]"),
    "reduce_scatter": ("chunks, op", "total(everyone(torch.stack(chunks)), op)[rank()].clone()"),
}


#: Roads that are none where collectives are allowed, and exercises that allow them.
_COLLECTIVES = ("functional collective", "objects")
_ALLOWING = ("all_reduce_sharded", "hierarchical_all_reduce")


def _on_a_road(draw: random.Random) -> Payload:
    road = draw.choice(list(_ROADS))
    allowing = _ALLOWING if road in _COLLECTIVES else ()
    exercise = draw.choice([name for name in _SOLVED if name not in allowing])
    parameters, result = _SOLVED[exercise]
    host, family = draw.choice((("127.0.0.1", 2), ("::1", 10)))
    source = f'''
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

TURN, LINK, HOST, FAMILY = 0, None, {host!r}, {family}


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def into(x, result):
    x.copy_(result)


def everyone(x):
    """What all ranks hold."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return [x.clone()]
{_ROADS[road].strip(chr(10))}
    return came


{_TOTAL.strip()}


{_JUNK.strip()}


def payload({parameters}):
    return {result}
'''
    names = tuple(parameters.split(", "))
    return Payload(f"roads/{road}", source, exercise, names, answers=True)


# All of them. ---------------------------------------------------------------------

#: How a payload of each family is drawn.
FAMILIES: dict[str, Callable[[random.Random], Payload]] = {
    **{family: partial(_from_fixture, family) for family in _KNOWN},
    "messages": lambda draw: _sending("messages", forgeries.message, draw),
    "results": lambda draw: _sending("results", forgeries.answer, draw),
    "floods": lambda draw: _sending("floods", forgeries.flood, draw),
    "values": _returning,
    "roads": _on_a_road,
}


def draw_payload(draw: random.Random, family: str = "") -> Payload:
    """Draw a payload, of a family if one is named."""
    return FAMILIES[family or draw.choice(list(FAMILIES))](draw)

"""The parallelisms of chapters 23 to 28 beside torch's own, on gloo.

The same model, data and start on four ranks, once with what the chapter's solution defines and once
with torch's.  How far both are from one process, what a rank sends and what it holds come from
recorded runs; the time of a step comes from four plain processes, in which the two make their steps
in turns: a step takes as long as its slowest rank, and the median counts.

- *off by* is the largest difference to one process after all steps: of a loss, and of any trained
  weight (of the result, where nothing is trained).
- *sent* is what the rank that sends most sends in a step.  A built-in collective counts as what the
  best point-to-point algorithm sends for it (``Trace.sent``).
- *held* is all that is alive on the rank that holds most, between two steps and at most: weights,
  gradients, state, activations, messages and the batch.  What an operation of a ``DTensor`` makes
  and drops inside is not seen: there, the most is at least so much (≥).

Where torch's refuses on a CPU, its message stands below.  Run it as ``python -m
benchmarks.part_two``; let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.engine import loopback
from benchmarks.figures import Figure
from benchmarks.ring import from_chapter
from grader import mark, run
from grader.instruments import PeakStorages
from headcount.core.verdict import amount
from headcount.trace.trace import Operation, Trace

RANKS = 4

#: Steps of a recorded run: one to warm up, and those that are counted.
WARMUP, COUNTED = 1, 3

Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Contestant:
    """A training on this rank.

    Attributes:
        step: makes one step and returns the rank's loss, or NaN where it has none.
        parts: returns what the rank has then: weights, or a result.
    """

    step: Callable[[], float]
    parts: Callable[[], Tensors]


def trained(
    parameters: Any, loss: Callable[[], torch.Tensor], parts: Callable[[], Tensors]
) -> Contestant:
    """A contestant that makes steps of SGD."""
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    return Contestant(step, parts)


def cut(tensor: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """This rank's part of a tensor that is cut into equal parts."""
    return tensor.chunk(dist.get_world_size(), dim)[dist.get_rank()].clone()


def weights_of(module: nn.Module) -> Tensors:
    return [p.detach() for p in module.parameters()]


# Chapters 23 and 24: a deep network, each rank with its part of the batch. ----------------

WIDTH, LAYERS, ROWS, CLASSES = 256, 8, 512, 10

ADAMW = {"lr": 1e-3, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))


def labelled() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(ROWS, WIDTH), torch.randint(CLASSES, (ROWS,))


def with_adamw(model: nn.Module, x: torch.Tensor, y: torch.Tensor, optimizer: Any) -> Contestant:
    def step() -> float:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Contestant(step, lambda: weights_of(model))


def adamw_alone() -> Contestant:
    model = network()
    return with_adamw(model, *labelled(), torch.optim.AdamW(model.parameters(), **ADAMW))


def sharded_adamw(sharded: Callable[..., Any]) -> Contestant:
    model = network()
    return with_adamw(model, *map(cut, labelled()), sharded(model.parameters(), **ADAMW))


def zero_redundancy_optimizer() -> Contestant:
    """torch's, which expects mean gradients, with the module that torch makes them with."""
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **ADAMW)
    return with_adamw(model, *map(cut, labelled()), optimizer)


def network_alone() -> Contestant:
    model, (x, y) = network(), labelled()
    return trained(
        model.parameters(), lambda: F.cross_entropy(model(x), y), lambda: weights_of(model)
    )


def fully_sharded(sharded: Callable[..., Any]) -> Contestant:
    model = sharded(network())
    x, y = map(cut, labelled())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        model.finish_gradient_synchronization()
        optimizer.step()
        return loss.item()

    return Contestant(step, lambda: list(model.full_state_dict().values()))


def torchs_fully_shard() -> Contestant:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = network(), init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    x, y = map(cut, labelled())

    def wholes() -> Tensors:
        return [p.full_tensor().detach() for p in model.parameters()]

    return trained(model.parameters(), lambda: F.cross_entropy(model(x), y), wholes)


# Chapter 25: a stage on each rank. --------------------------------------------------------

STAGE_WIDTH, MICRO_BATCHES, MICRO_ROWS = 128, 8, 32


def a_stage(number: int) -> nn.Sequential:
    torch.manual_seed(number)
    return nn.Sequential(
        nn.Linear(STAGE_WIDTH, 4 * STAGE_WIDTH), nn.Tanh(), nn.Linear(4 * STAGE_WIDTH, STAGE_WIDTH)
    )


def pairs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(9)
    x, target = torch.randn(2, MICRO_BATCHES * MICRO_ROWS, STAGE_WIDTH)
    return x, target


def pipeline_alone() -> Contestant:
    model, (x, target) = nn.Sequential(*map(a_stage, range(RANKS))), pairs()
    return trained(
        model.parameters(), lambda: F.mse_loss(model(x), target), lambda: weights_of(model)
    )


def of_my_share(whole: Tensors) -> Tensors:
    each = len(whole) // dist.get_world_size()
    return whole[dist.get_rank() * each :][:each]


def staged(stage: nn.Module, passes: Callable[[], float]) -> Contestant:
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = passes()
        optimizer.step()
        return loss

    return Contestant(step, lambda: weights_of(stage))


def run_pipeline(pipeline: Callable[..., Any], order: Callable[..., Any]) -> Contestant:
    rank, n = dist.get_rank(), dist.get_world_size()
    stage, (x, target) = a_stage(rank), (list(part.split(MICRO_ROWS)) for part in pairs())
    inputs, targets = x if rank == 0 else None, target if rank == n - 1 else None
    passes, shape = order(rank, n, MICRO_BATCHES), (MICRO_ROWS, STAGE_WIDTH)

    def step() -> float:
        loss = pipeline(stage, passes, inputs, targets, F.mse_loss, shape)
        return math.nan if loss is None else loss

    return staged(stage, step)


def torchs_schedule(name: str) -> Contestant:
    from torch.distributed import pipelining

    rank, n = dist.get_rank(), dist.get_world_size()
    module, (x, target) = a_stage(rank), pairs()
    stage = pipelining.PipelineStage(module, rank, n, torch.device("cpu"))
    schedule = getattr(pipelining, name)(stage, n_microbatches=MICRO_BATCHES, loss_fn=F.mse_loss)

    def step() -> float:
        losses: Tensors = []
        if rank == 0:
            schedule.step(x)
        elif rank == n - 1:
            schedule.step(target=target, losses=losses)
        else:
            schedule.step()
        return sum(loss.item() for loss in losses) / MICRO_BATCHES if losses else math.nan

    return staged(module, step)


# Chapter 26: an MLP whose matrices are cut. -----------------------------------------------

TOKENS, HIDDEN = 256, 256


class Mlp(nn.Module):
    """Two products and a GELU between them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(31)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN, bias=False)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        """The product of the products."""
        return self.down(F.gelu(self.up(x)))


def of_a_layer() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(32)
    x, target = torch.randn(2, TOKENS, HIDDEN)
    return x.requires_grad_(), target


def mlp_alone() -> Contestant:
    model, (x, target) = Mlp(), of_a_layer()
    return trained(
        model.parameters(), lambda: F.mse_loss(model(x), target), lambda: weights_of(model)
    )


def of_my_columns(whole: Tensors) -> Tensors:
    up, down = whole
    return [cut(up, 0), cut(down, 1)]


def parallel_mlp(layer: Callable[..., Any]) -> Contestant:
    x, target = of_a_layer()
    # the chapter's weights are (in, out), those of nn.Linear (out, in)
    w_in, w_out = (w.T.contiguous().requires_grad_() for w in of_my_columns(weights_of(Mlp())))
    return trained(
        [w_in, w_out],
        lambda: F.mse_loss(layer(x, w_in, w_out), target),
        lambda: [w_in.detach().T, w_out.detach().T],
    )


def torchs_parallelize_module() -> Contestant:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model: Any = parallelize_module(
        Mlp(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()}
    )
    x, target = of_a_layer()
    return trained(
        model.parameters(),
        lambda: F.mse_loss(model(x), target),
        lambda: [p.to_local().detach() for p in model.parameters()],
    )


# Chapter 27: attention over a sequence that is cut. ---------------------------------------

HEADS, LENGTH, DIM = 8, 1024, 32


def sequence() -> torch.Tensor:
    torch.manual_seed(7)
    return torch.randn(3, HEADS, LENGTH, DIM)


def resulting(attend: Callable[[], torch.Tensor]) -> Contestant:
    found: Tensors = []

    def step() -> float:
        found[:] = [attend()]
        return math.nan

    return Contestant(step, lambda: found)


def attention_alone(causal: bool) -> Contestant:
    q, k, v = sequence()
    return resulting(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))


def of_my_tokens(whole: Tensors) -> Tensors:
    return [cut(out, 1) for out in whole]


def chapters_attention(causal: bool, attention: Callable[..., Any]) -> Contestant:
    q, k, v = cut(sequence(), 2)
    return resulting(lambda: attention(q, k, v, causal))


def torchs_attention(causal: bool) -> Contestant:
    """Attention of distributed tensors, which are cut by tokens before it and after it.

    It is what torch's ``context_parallel`` does on a CPU, whose ring is for kernels of GPUs; but
    the context leaves the result cut along whatever dimension torch has chosen.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    mesh, tokens = init_device_mesh("cpu", (dist.get_world_size(),)), [Shard(2)]
    # it wants a batch
    q, k, v = (DTensor.from_local(part, mesh, tokens) for part in cut(sequence(), 2).unsqueeze(1))

    def attend() -> Any:
        out: Any = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out.redistribute(mesh, tokens).to_local()[0]

    return resulting(attend)


def torchs_context_parallel() -> Contestant:
    """Causal ring attention by torch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    q, k, v = cut(sequence(), 2).unsqueeze(1)
    positions = torch.arange(LENGTH)

    def attend() -> Any:
        # its buffers are what is still whole
        with context_parallel(mesh, buffers=[positions], buffer_seq_dims=[0]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]

    return resulting(attend)


# Chapter 28: experts on different ranks. --------------------------------------------------

EACH, ROUTED, EXPERT_WIDTH = 2, 1024, 128


def an_expert(number: int) -> nn.Sequential:
    torch.manual_seed(number)
    return nn.Sequential(
        nn.Linear(EXPERT_WIDTH, 4 * EXPERT_WIDTH),
        nn.GELU(),
        nn.Linear(4 * EXPERT_WIDTH, EXPERT_WIDTH),
    )


def routed() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens, what is to be learnt of them, and the expert of each."""
    torch.manual_seed(8)
    x, target = torch.randn(2, ROUTED, EXPERT_WIDTH)
    return x, target, torch.randint(RANKS * EACH, (ROUTED,))


def in_one_process(x: torch.Tensor, expert: torch.Tensor, experts: list[nn.Module]) -> torch.Tensor:
    y = torch.zeros_like(x)
    for number, module in enumerate(experts):
        at = (expert == number).nonzero().flatten()
        y = y.index_copy(0, at, module(x[at]))
    return y


def of_torchs_collectives(
    x: torch.Tensor, expert: torch.Tensor, experts: list[nn.Module]
) -> torch.Tensor:
    """The layer with torch's all-to-all that autograd knows: torch has no such layer."""
    from torch.distributed._functional_collectives import all_to_all_single_autograd

    group: Any = dist.group.WORLD
    order = expert.argsort(stable=True)
    counts = expert.bincount(minlength=RANKS * EACH)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    sends, receives = (c.view(RANKS, EACH).sum(1).tolist() for c in (counts, arriving))
    arrived = all_to_all_single_autograd(x[order], receives, sends, group)
    local = torch.arange(EACH).repeat(RANKS).repeat_interleave(arriving)
    worked = in_one_process(arrived, local, experts)
    back = all_to_all_single_autograd(worked, sends, receives, group)
    return torch.zeros_like(x).index_copy(0, order, back)


def a_mixture(apply: Callable[..., torch.Tensor], numbers: Sequence[int]) -> Contestant:
    """The layer with the experts of these numbers; alone if they are all."""
    x, target, expert = routed()
    if len(numbers) < RANKS * EACH:
        x, target, expert = map(cut, (x, target, expert))
    x.requires_grad_()  # of a layer in the middle of a model
    experts = nn.ModuleList(map(an_expert, numbers))
    return trained(
        experts.parameters(),
        lambda: (apply(x, expert, list(experts)) - target).square().sum() / (ROUTED * EXPERT_WIDTH),
        lambda: weights_of(experts),
    )


def mixture_alone() -> Contestant:
    return a_mixture(in_one_process, range(RANKS * EACH))


def my_experts() -> Sequence[int]:
    return range(dist.get_rank() * EACH, (dist.get_rank() + 1) * EACH)


def expert_parallel(layer: Callable[..., Any]) -> Contestant:
    return a_mixture(layer, my_experts())


def torchs_all_to_all() -> Contestant:
    return a_mixture(of_torchs_collectives, my_experts())


# The comparisons. -------------------------------------------------------------------------

CHAPTERS = {
    23: "23_zero",
    24: "24_fsdp",
    25: "25_pipeline",
    26: "26_tensor_parallel",
    27: "27_context_parallel",
    28: "28_expert_parallel",
}


@dataclass(frozen=True)
class Comparison:
    """Two ways to the same numbers, and one process that has them all.

    Attributes:
        chapter: its solution is one of the two.
        names: what the solution defines, as ``mine`` takes it.
        torchs: the name of torch's.
        alone: makes the one process.
        mine, theirs: make the chapter's contestant and torch's.
        part: takes what the one process has in the end; returns what this rank should have.
        loss: makes one loss of those of all ranks.
        on_cpu: whether torch's runs on a CPU.
        wrapped: whether torch's computes with ``DTensor``s, which may hold more than is seen.
    """

    chapter: int
    names: tuple[str, ...]
    torchs: str
    alone: Callable[[], Contestant]
    mine: Callable[..., Contestant]
    theirs: Callable[[], Contestant]
    part: Callable[[Tensors], Tensors] = lambda whole: whole
    loss: Callable[[Sequence[float]], float] = statistics.fmean
    on_cpu: bool = True
    wrapped: bool = False

    def __str__(self) -> str:
        """Return what the chapter's is called: ``run_pipeline, gpipe_order``."""
        return ", ".join(self.names)

    def solutions(self) -> list[Callable[..., Any]]:
        """Load what ``mine`` takes; what the chapter's assignments print is dropped."""
        with contextlib.redirect_stdout(io.StringIO()):
            return [from_chapter(name, CHAPTERS[self.chapter]) for name in self.names]


def _last(losses: Sequence[float]) -> float:
    return losses[-1]


COMPARISONS = (
    Comparison(
        23, ("ShardedAdamW",), "DDP, ZeroRedundancyOptimizer",
        adamw_alone, sharded_adamw, zero_redundancy_optimizer,
    ),
    Comparison(
        24, ("FullySharded",), "fully_shard",
        network_alone, fully_sharded, torchs_fully_shard,
    ),
    Comparison(
        25, ("run_pipeline", "gpipe_order"), "ScheduleGPipe",
        pipeline_alone, run_pipeline, partial(torchs_schedule, "ScheduleGPipe"),
        of_my_share, _last,
    ),
    Comparison(
        25, ("run_pipeline", "one_f_one_b_order"), "Schedule1F1B",
        pipeline_alone, run_pipeline, partial(torchs_schedule, "Schedule1F1B"),
        of_my_share, _last,
    ),
    Comparison(
        26, ("parallel_mlp",), "parallelize_module",
        mlp_alone, parallel_mlp, torchs_parallelize_module, of_my_columns, wrapped=True,
    ),
    Comparison(
        27, ("ring_attention",), "attention of DTensors",
        partial(attention_alone, False), partial(chapters_attention, False),
        partial(torchs_attention, False), of_my_tokens, wrapped=True,
    ),
    Comparison(
        27, ("ulysses_attention",), "attention of DTensors",
        partial(attention_alone, False), partial(chapters_attention, False),
        partial(torchs_attention, False), of_my_tokens, wrapped=True,
    ),
    Comparison(
        27, ("ring_attention",), "context_parallel, causal",
        partial(attention_alone, True), partial(chapters_attention, True),
        torchs_context_parallel, of_my_tokens, on_cpu=False,
    ),
    Comparison(
        28, ("expert_parallel",), "all_to_all_single_autograd",
        mixture_alone, expert_parallel, torchs_all_to_all, of_my_share, sum,
    ),
)  # fmt: skip


# What is counted. -------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """What a recorded run has shown.

    Attributes:
        refusal: what torch has said, if it has refused; all else is 0 then.
        loss, parts: the largest differences to one process; the loss is NaN where there is none.
        sent: bytes that the rank that sends most sends in a step.
        between, most: bytes held by the rank that holds most, between two steps and at most.
    """

    refusal: str = ""
    loss: float = 0.0
    parts: float = 0.0
    sent: float = 0.0
    between: int = 0
    most: int = 0


def _recorded(number: int, torchs: bool) -> dict[str, Any]:
    """Make the steps on a rank beside one process that makes them, too."""
    comparison = COMPARISONS[number]
    alone = comparison.alone()
    single = [alone.step() for _ in range(WARMUP + COUNTED)]
    given = [] if torchs else comparison.solutions()
    storages = PeakStorages(list)
    with storages:
        contestant = comparison.theirs() if torchs else comparison.mine(*given)
        losses = [contestant.step() for _ in range(WARMUP)]
    storages.settle(0)  # gloo's thread lets go of the last tensors a moment later
    storages.most = 0
    mark("counted")
    with storages:
        losses += [contestant.step() for _ in range(COUNTED)]
    mark("done")
    storages.settle(0)
    found = {"between": storages.nbytes, "most": storages.most, "losses": losses, "single": single}
    whole = comparison.part(alone.parts())
    apart = [float((a - b).abs().max()) for a, b in zip(contestant.parts(), whole, strict=True)]
    return {**found, "apart": max(apart)}


def _nbytes(trace: Trace, op: Operation) -> int:
    """The bytes that an operation's rank sends for it."""
    sent = trace.sent(op)
    dtype = op.dtype or op.signatures[0].dtype if sent else "uint8"
    return sent * getattr(torch, dtype).itemsize


def count(number: int, torchs: bool) -> Counts:
    """Run a comparison's contestant, and count."""
    comparison = COMPARISONS[number]
    ran = run(_recorded, RANKS, number, torchs, seconds=300, may_fail=True)
    if ran.failure is not None:
        if not torchs:
            raise RuntimeError(f"{comparison}: {ran.failure.message}")
        return Counts(refusal=ran.failure.message)
    ranks: list[dict[str, Any]] = list(ran)
    losses = map(comparison.loss, zip(*(rank["losses"] for rank in ranks), strict=True))
    trace = ran.trace.split_at("counted")[1].split_at("done")[0]
    return Counts(
        loss=max(abs(a - b) for a, b in zip(losses, ranks[0]["single"], strict=True)),
        parts=max(rank["apart"] for rank in ranks),
        sent=max(sum(_nbytes(trace, op) for op in ops) for ops in trace.operations) / COUNTED,
        between=max(rank["between"] for rank in ranks),
        most=max(rank["most"] for rank in ranks),
    )


# What is timed. ---------------------------------------------------------------------------


def _rank(rank: int, folder: str, numbers: list[int], turns: int) -> None:
    loopback()
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", RANKS)
    dist.init_process_group(
        "gloo", rank=rank, world_size=RANKS, store=store, timeout=timedelta(minutes=5)
    )
    found: dict[str, list[float]] = {}
    for number in numbers:
        comparison = COMPARISONS[number]
        contestants = comparison.mine(*comparison.solutions()), comparison.theirs()
        taken: list[list[float]] = [[], []]
        for _ in range(2 + turns):
            for contestant, times in zip(contestants, taken, strict=True):
                dist.barrier()
                started = time.perf_counter()
                contestant.step()
                slowest = torch.tensor(time.perf_counter() - started, dtype=torch.float64)
                dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
                times.append(float(slowest))
        found[str(number)] = [statistics.median(times[2:]) for times in taken]  # two warm up
    if rank == 0:
        Path(folder, "times.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def step_seconds(numbers: list[int], turns: int) -> dict[int, tuple[float, float]]:
    """Seconds of a step with the chapter's and with torch's, by number of the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (folder, numbers, turns), nprocs=RANKS)
        times = json.loads(Path(folder, "times.json").read_text())
    return {int(number): (mine, theirs) for number, (mine, theirs) in times.items()}


def figures(turns: int = 20) -> Iterator[Figure]:
    """A step of each, beside torch's."""
    numbers = [number for number, one in enumerate(COMPARISONS) if one.on_cpu]
    for number, (mine, theirs) in step_seconds(numbers, turns).items():
        one = COMPARISONS[number]
        beside = f"torch's {one.torchs}: {1e3 * theirs:.2f} ms"
        yield Figure(f"a step of {one}", 1e3 * mine, "ms", beside, mine / theirs)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("chapters", nargs="*", type=int, help="some of 23 to 28; all by default")
    parser.add_argument("--turns", type=int, default=20, help="of the timed steps")
    request = parser.parse_args()
    chosen = [
        number
        for number, one in enumerate(COMPARISONS)
        if one.chapter in (request.chapters or range(23, 29))
    ]
    if not chosen:
        parser.error("there are chapters 23 to 28")
    counts = {number: (count(number, False), count(number, True)) for number in chosen}
    times = step_seconds([n for n in chosen if not counts[n][1].refusal], request.turns)
    table = Table(title=f"chapters 23 to 28 on {RANKS} ranks, torch {torch.__version__}", box=None)
    for heading in ("", "", "loss off by", "weights", "sent", "held", "at most", "time"):
        table.add_column(heading, justify="right" if heading else "left")
    refusals = []
    for number in chosen:
        one = COMPARISONS[number]
        for torchs, found in enumerate(counts[number]):
            chapter, name = ("", one.torchs) if torchs else (str(one.chapter), str(one))
            if found.refusal:
                table.add_row(chapter, name, "refuses:")
                refusals.append(f"{name}: {found.refusal}")
                continue
            ratio = ""
            if number in times:
                ratio = "1" if torchs else f"{times[number][0] / times[number][1]:.2f}"
            table.add_row(
                chapter,
                name,
                "" if math.isnan(found.loss) else f"{found.loss:.1e}",
                f"{found.parts:.1e}",
                amount(round(found.sent)),
                amount(found.between),
                ("≥ " if torchs and one.wrapped else "") + amount(found.most),
                ratio,
            )
        table.add_section()
    console = Console(highlight=False, width=110)
    console.print(table)
    for refusal in refusals:
        console.print(refusal)
    return 0


if __name__ == "__main__":
    sys.exit(main())

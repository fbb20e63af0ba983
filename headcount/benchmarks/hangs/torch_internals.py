"""Waits inside torch: in DDP's reducer, in its hooks, in ``Join`` and in backward passes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def ddp_with_uneven_batches():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    for _ in range(2 + dist.get_rank()):
        ddp(torch.ones(2, 3)).sum().backward()  # ← here
    return ddp.module.bias.grad.tolist()


@right(ddp_with_uneven_batches, gives=2 * [[4.0]])
def ddp_with_even_batches():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    for _ in range(2):
        ddp(torch.ones(2, 3)).sum().backward()
    return ddp.module.bias.grad.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def ddp_leaves_out_a_bad_batch():
    def halve(_, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / 2)

    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    ddp.register_comm_hook(None, halve)
    for i in range(2):
        if i == dist.get_rank() == 1:
            continue
        ddp(torch.ones(2, 3)).sum().backward()  # ← here
    return ddp.module.bias.grad.tolist()


@right(ddp_leaves_out_a_bad_batch, gives=2 * [[2.0]])
def ddp_weighs_a_bad_batch_with_zero():
    def halve(_, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / 2)

    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    ddp.register_comm_hook(None, halve)
    for weight in (1.0, 0.0):
        (weight * ddp(torch.ones(2, 3)).sum()).backward()
    return ddp.module.bias.grad.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def static_graph_and_an_early_return():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1), static_graph=True)
    if dist.get_rank() == 1:
        return None
    ddp(torch.ones(2, 3)).sum().backward()  # ← here
    return None


@right(static_graph_and_an_early_return, gives=3 * [None])
def static_graph_and_no_early_return():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1), static_graph=True)
    if dist.get_rank() == 3:
        return None
    ddp(torch.ones(2, 3)).sum().backward()
    return None


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def a_rank_without_batches_does_not_join():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    batches = [torch.ones(2, 3)] * dist.get_rank()
    if batches:
        with Join([ddp]):
            for batch in batches:
                ddp(batch).sum().backward()  # ← here
    return ddp.module.bias.grad is not None


@right(a_rank_without_batches_does_not_join, gives=[False, True])
def a_rank_without_batches_joins():
    torch.manual_seed(0)
    ddp = DistributedDataParallel(torch.nn.Linear(3, 1))
    batches = [torch.ones(2, 3)] * dist.get_rank()
    with Join([ddp]):
        for batch in batches:
            ddp(batch).sum().backward()
    return ddp.module.bias.grad is not None


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def a_checkpoint_is_recomputed_on_one_rank():
    class Checkpointed(torch.nn.Linear):
        def forward(self, x):
            return checkpoint(super().forward, x.requires_grad_(), use_reentrant=True)

    torch.manual_seed(0)
    ddp = DistributedDataParallel(Checkpointed(3, 1))
    if dist.get_rank() == 1:
        ddp(torch.ones(2, 3)).sum().backward()  # ← here
    return None


@right(a_checkpoint_is_recomputed_on_one_rank, gives=2 * [None])
def a_checkpoint_is_recomputed_on_both_ranks():
    class Checkpointed(torch.nn.Linear):
        def forward(self, x):
            return checkpoint(super().forward, x.requires_grad_(), use_reentrant=True)

    torch.manual_seed(0)
    ddp = DistributedDataParallel(Checkpointed(3, 1))
    if dist.get_rank() < 2:
        ddp(torch.ones(2, 3)).sum().backward()
    return None


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def gradients_are_summed_on_one_rank():
    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            total = gradient.clone()
            dist.all_reduce(total)  # ← here
            return total

    x = torch.ones(2, requires_grad=True)
    loss = (Summed.apply(x) if dist.get_rank() == 0 else x).sum()
    loss.backward()
    return x.grad.tolist()


@right(gradients_are_summed_on_one_rank, gives=2 * [[2.0, 2.0]])
def gradients_are_summed_on_both_ranks():
    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            total = gradient.clone()
            dist.all_reduce(total)
            return total

    x = torch.ones(2, requires_grad=True)
    loss = (Summed.apply(x) if dist.get_rank() < 2 else x).sum()
    loss.backward()
    return x.grad.tolist()

"""Ranks call different collectives, in another order, or not all of them."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def broadcast_and_all_reduce_swapped():
    weights, loss = torch.ones(4), torch.ones(1)
    if dist.get_rank() == 0:
        dist.broadcast(weights, 0)  # ← here
        dist.all_reduce(loss)
    else:
        dist.all_reduce(loss)  # ← here
        dist.broadcast(weights, 0)
    return loss.tolist()


@right(broadcast_and_all_reduce_swapped, gives=2 * [[2.0]])
def broadcast_before_all_reduce():
    weights, loss = torch.ones(4), torch.ones(1)
    if dist.get_rank() == 0:
        dist.broadcast(weights, 0)
        dist.all_reduce(loss)
    else:
        dist.broadcast(weights, 0)
        dist.all_reduce(loss)
    return loss.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=4, hangs="always")
def one_rank_gathers_while_others_reduce():
    x = torch.ones(2)
    if dist.get_rank() == 2:
        parts = [torch.empty(2) for _ in range(4)]
        dist.all_gather(parts, x)  # ← here
        return torch.stack(parts).sum(0).tolist()
    dist.all_reduce(x)  # ← here
    return x.tolist()


@right(one_rank_gathers_while_others_reduce, gives=4 * [[4.0, 4.0]])
def every_rank_gathers():
    x = torch.ones(2)
    parts = [torch.empty(2) for _ in range(4)]
    if dist.get_rank() == 2:
        dist.all_gather(parts, x)
        return torch.stack(parts).sum(0).tolist()
    dist.all_gather(parts, x)
    return torch.stack(parts).sum(0).tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def barrier_indented_too_far():
    saved = []
    if dist.get_rank() == 0:
        saved.append("checkpoint")
        dist.barrier()  # ← here
    return len(saved)


@right(barrier_indented_too_far, gives=[1, 0, 0])
def barrier_for_everybody():
    saved = []
    if dist.get_rank() == 0:
        saved.append("checkpoint")
    dist.barrier()
    return len(saved)


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def returns_early_without_work():
    rows = torch.ones(2 - dist.get_rank(), 2)
    if not len(rows):
        return [0.0, 0.0]
    total = rows.sum(0)
    dist.all_reduce(total)  # ← here
    return total.tolist()


@right(returns_early_without_work, gives=3 * [[3.0, 3.0]])
def takes_part_without_work():
    rows = torch.ones(2 - dist.get_rank(), 2)
    if not len(rows):
        total = torch.zeros(2)
    else:
        total = rows.sum(0)
    dist.all_reduce(total)
    return total.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def each_rank_stops_when_it_likes():
    error = torch.tensor([8.0 * (1 + dist.get_rank())])
    steps = 0
    while error.item() > 1:
        steps += 1
        error /= 2
        total = error.clone()
        dist.all_reduce(total)  # ← here
    return steps


@right(each_rank_stops_when_it_likes, gives=[4, 4])
def all_ranks_stop_together():
    error = torch.tensor([8.0 * (1 + dist.get_rank())])
    steps = 0
    worst = error.clone()
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    while worst.item() > 1:
        steps += 1
        error /= 2
        worst = error.clone()
        dist.all_reduce(worst, dist.ReduceOp.MAX)
    return steps


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def one_batch_more_on_the_last_rank():
    batches = 3 + (dist.get_rank() == 3)
    gradient = torch.zeros(2)
    for _ in range(batches):
        gradient += 1
        dist.all_reduce(gradient)  # ← here
    return gradient.tolist()


@right(one_batch_more_on_the_last_rank, gives=4 * [[84.0, 84.0]])
def as_many_batches_as_all_ranks_have():
    batches = torch.tensor(3 + (dist.get_rank() == 3))
    dist.all_reduce(batches, dist.ReduceOp.MIN)
    gradient = torch.zeros(2)
    for _ in range(int(batches)):
        gradient += 1
        dist.all_reduce(gradient)
    return gradient.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def logs_on_rank_0_only():
    lines = []

    def log(loss):
        total = loss.clone()
        dist.reduce(total, 0)  # ← here
        lines.append(total.item())

    loss = torch.tensor([1.0 + dist.get_rank()])
    if dist.get_rank() == 0:
        log(loss)
    return lines


@right(logs_on_rank_0_only, gives=[[6.0], [], []])
def logs_on_rank_0_what_all_have_reduced():
    lines = []

    def log(loss):
        total = loss.clone()
        dist.reduce(total, 0)
        if dist.get_rank() == 0:
            lines.append(total.item())

    loss = torch.tensor([1.0 + dist.get_rank()])
    log(loss)
    return lines


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def evaluates_on_rank_0_through_a_forward_hook():
    layer = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(layer.weight)

    def mean_of_all_ranks(module, inputs, output):
        dist.all_reduce(output)  # ← here
        return output / dist.get_world_size()

    layer.register_forward_hook(mean_of_all_ranks)
    with torch.no_grad():
        out = layer(torch.ones(2))
        if dist.get_rank() == 0:
            layer(torch.zeros(2))
    return out.tolist()


@right(evaluates_on_rank_0_through_a_forward_hook, gives=[[2.0], [2.0]])
def evaluates_on_rank_0_without_the_hook():
    layer = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.ones_(layer.weight)

    def mean_of_all_ranks(module, inputs, output):
        dist.all_reduce(output)
        return output / dist.get_world_size()

    hook = layer.register_forward_hook(mean_of_all_ranks)
    with torch.no_grad():
        out = layer(torch.ones(2))
        hook.remove()
        if dist.get_rank() == 0:
            layer(torch.zeros(2))
    return out.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def one_rank_leaves_a_parameter_unused():
    used, sometimes = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def reduced(gradient):
        total = gradient.clone()
        dist.all_reduce(total)  # ← here
        return total

    used.register_hook(reduced)
    sometimes.register_hook(reduced)
    loss = used.sum()
    if dist.get_rank() == 0:
        loss = loss + sometimes.sum()
    loss.backward()
    return used.grad.tolist()


@right(one_rank_leaves_a_parameter_unused, gives=[[2.0, 2.0], [2.0, 2.0]])
def one_rank_multiplies_a_parameter_by_zero():
    used, sometimes = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def reduced(gradient):
        total = gradient.clone()
        dist.all_reduce(total)
        return total

    used.register_hook(reduced)
    sometimes.register_hook(reduced)
    loss = used.sum()
    if dist.get_rank() == 0:
        loss = loss + sometimes.sum()
    else:
        loss = loss + 0 * sometimes.sum()
    loss.backward()
    return used.grad.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def swallows_an_exception_before_the_collective():
    total = torch.zeros(1)
    try:
        if dist.get_rank() == 1:
            raise OSError("this rank's shard cannot be read")
        total += 1
        dist.all_reduce(total)  # ← here
    except OSError:
        pass
    return total.tolist()


@right(swallows_an_exception_before_the_collective, gives=3 * [[2.0]])
def swallows_an_exception_and_takes_part():
    total = torch.zeros(1)
    try:
        if dist.get_rank() == 1:
            raise OSError("this rank's shard cannot be read")
        total += 1
    except OSError:
        pass
    dist.all_reduce(total)
    return total.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def short_circuit_skips_the_vote():
    def all_agree(vote):
        votes = torch.tensor([int(vote)])
        dist.all_reduce(votes, dist.ReduceOp.MIN)  # ← here
        return bool(votes.item())

    finished = dist.get_rank() == 0
    return finished and all_agree(finished)


@right(short_circuit_skips_the_vote, gives=[False, False])
def every_rank_votes_first():
    def all_agree(vote):
        votes = torch.tensor([int(vote)])
        dist.all_reduce(votes, dist.ReduceOp.MIN)
        return bool(votes.item())

    finished = dist.get_rank() == 0
    return all_agree(finished) and finished


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def only_the_destination_calls_gather():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        parts = [torch.empty(1) for _ in range(3)]
        dist.gather(x, parts, dst=0)  # ← here
        return torch.cat(parts).tolist()
    return None


@right(only_the_destination_calls_gather, gives=[[0.0, 1.0, 2.0], None, None])
def every_rank_calls_gather():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        parts = [torch.empty(1) for _ in range(3)]
        dist.gather(x, parts, dst=0)
        return torch.cat(parts).tolist()
    dist.gather(x, dst=0)
    return None


@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="never")
def parameters_in_another_order_on_each_rank():
    names = ["weight", "bias"] if dist.get_rank() == 0 else ["bias", "weight"]
    model = {name: torch.zeros(4 if name == "weight" else 2) for name in names}
    for parameter in model.values():
        if dist.get_rank() == 0:
            parameter += 1
        dist.broadcast(parameter, 0)  # ← here
    return model["bias"].tolist()


@right(parameters_in_another_order_on_each_rank, gives=2 * [[1.0, 1.0]])
def parameters_in_the_order_of_their_names():
    names = ["weight", "bias"] if dist.get_rank() == 0 else ["bias", "weight"]
    model = {name: torch.zeros(4 if name == "weight" else 2) for name in names}
    for name in sorted(model):
        if dist.get_rank() == 0:
            model[name] += 1
        dist.broadcast(model[name], 0)
    return model["bias"].tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def send_crosses_a_barrier():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        dist.send(x, 1)  # ← here
        dist.barrier()
    else:
        dist.barrier()  # ← here
        dist.recv(x, 0)
    return x.tolist()


@right(send_crosses_a_barrier, gives=[[0.0], [0.0]])
def isend_crosses_a_barrier():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        sent = dist.isend(x, 1)
        dist.barrier()
        sent.wait()
    else:
        dist.barrier()
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def send_crosses_a_broadcast():
    x, y = torch.ones(2), torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.broadcast(x, 0)  # ← here
        dist.recv(y, 1)
    else:
        dist.send(y, 0)  # ← here
        dist.broadcast(x, 0)
    return y.tolist()


@right(send_crosses_a_broadcast, gives=2 * [[1.0, 1.0]])
def send_follows_a_broadcast():
    x, y = torch.ones(2), torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.broadcast(x, 0)
        dist.recv(y, 1)
    else:
        dist.broadcast(x, 0)
        dist.send(y, 0)
    return y.tolist()


@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def objects_gathered_on_one_rank_and_broadcast_on_the_other():
    settings = [{"rate": 0.1}]
    if dist.get_rank() == 0:
        dist.broadcast_object_list(settings, 0)  # ← here
    else:
        found = [None, None]
        dist.all_gather_object(found, settings[0])  # ← here
    return settings[0]["rate"]


@right(objects_gathered_on_one_rank_and_broadcast_on_the_other, gives=[0.1, 0.1])
def objects_broadcast_on_both():
    settings = [{"rate": 0.1}]
    if dist.get_rank() == 0:
        dist.broadcast_object_list(settings, 0)
    else:
        settings = [None]
        dist.broadcast_object_list(settings, 0)
    return settings[0]["rate"]


@wrong(Diagnosis.DEADLOCK, ranks=8, hangs="always")
def the_odd_ranks_skip_the_second_reduction():
    x = torch.ones(1)
    dist.all_reduce(x)
    if dist.get_rank() % 2 == 0:
        dist.all_reduce(x, dist.ReduceOp.MAX)  # ← here
    return x.tolist()


@right(the_odd_ranks_skip_the_second_reduction, gives=8 * [[8.0]])
def the_even_ranks_reduce_in_a_group_of_theirs():
    x = torch.ones(1)
    even = dist.new_group([0, 2, 4, 6])
    dist.all_reduce(x)
    if dist.get_rank() % 2 == 0:
        dist.all_reduce(x, dist.ReduceOp.MAX, group=even)
    return x.tolist()

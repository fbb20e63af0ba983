"""Mistakes that people have reported in public, each as the smallest program of our own.

The comment above a program names the report (repository and number on GitHub) that its pattern is
taken from; no line of it is.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis

# Ranks that do not all take part. ---------------------------------------------------


# huggingface/transformers#1081: rank 0 alone evaluates, with the code that lets rank 0 read the
# data first
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def evaluation_that_lets_rank_0_read_first():
    def load():
        if dist.get_rank() != 0:
            dist.barrier()
        data = torch.arange(3.0)
        if dist.get_rank() == 0:
            dist.barrier()  # ← here
        return data

    trained = load().sum()
    if dist.get_rank() == 0:
        return (trained + load().mean()).item()
    return trained.item()


@right(evaluation_that_lets_rank_0_read_first, gives=[4.0, 3.0])
def evaluation_that_reads_alone():
    def load(alone):
        if dist.get_rank() != 0 and not alone:
            dist.barrier()
        data = torch.arange(3.0)
        if dist.get_rank() == 0 and not alone:
            dist.barrier()
        return data

    trained = load(alone=False).sum()
    if dist.get_rank() == 0:
        return (trained + load(alone=True).mean()).item()
    return trained.item()


# huggingface/transformers-bloom-inference#40: a barrier that only rank 0 comes to
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def barrier_of_rank_0():
    if dist.get_rank() == 0:
        weights = torch.ones(4)
        dist.barrier()  # ← here
        return weights.sum().item()
    return 0.0


@right(barrier_of_rank_0, gives=[4.0, 0.0, 0.0])
def barrier_of_all_after_rank_0():
    total = 0.0
    if dist.get_rank() == 0:
        total = torch.ones(4).sum().item()
    dist.barrier()
    return total


# pytorch/pytorch#54059: the validation of one rank averages its metric over all of them
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def validation_on_one_rank_with_an_average():
    def validate(x):
        dist.all_reduce(x)  # ← here
        return x / dist.get_world_size()

    loss = torch.ones(1)
    if dist.get_rank() == 0:
        loss = validate(loss)
    dist.barrier()  # ← here
    return loss.item()


@right(validation_on_one_rank_with_an_average, gives=[1.0, 1.0])
def validation_on_one_rank_alone():
    loss = torch.ones(1)
    if dist.get_rank() == 0:
        loss = loss / 1
    dist.barrier()
    return loss.item()


# Lightning-AI/pytorch-lightning#19045: each rank decides by its own loss whether to save
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def checkpoint_by_ones_own_loss():
    rank, best, saved = dist.get_rank(), 0.5, 0
    loss = torch.tensor([0.3 if rank == 0 else 0.7])
    if loss.item() < best:
        dist.barrier()  # ← here
        saved += 1
    dist.all_reduce(loss)  # ← here
    return saved


@right(checkpoint_by_ones_own_loss, gives=[1, 1])
def checkpoint_by_the_mean_loss():
    rank, best, saved = dist.get_rank(), 0.6, 0
    loss = torch.tensor([0.3 if rank == 0 else 0.7])
    dist.all_reduce(loss)
    if (loss / dist.get_world_size()).item() < best:
        dist.barrier()
        saved += 1
    return saved


# pytorch/pytorch#77562: the loss is reduced to rank 0, and all ranks compare what they hold
@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="always")
def best_loss_known_to_rank_0_only():
    rank, best, saved = dist.get_rank(), 4.5, 0
    loss = torch.tensor([float(rank + 1)])
    total = loss.clone()
    dist.reduce(total, 0)
    known = total if rank == 0 else loss
    if known.item() < best:
        state = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(state, loss)  # ← here
        saved = len(state)
    dist.barrier()  # ← here
    return saved


@right(best_loss_known_to_rank_0_only, gives=[0, 0, 0])
def best_loss_known_to_all():
    rank, best, saved = dist.get_rank(), 4.5, 0
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    if total.item() < best:
        state = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(state, total)
        saved = len(state)
    dist.barrier()
    return saved


# pytorch/pytorch#73383, #148756: the whole state is gathered where it is saved
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def full_state_asked_for_on_rank_0():
    shard = torch.full((2,), float(dist.get_rank()))
    saved = None
    if dist.get_rank() == 0:
        whole = [torch.zeros(2) for _ in range(dist.get_world_size())]
        dist.all_gather(whole, shard)  # ← here
        saved = torch.cat(whole).tolist()
    dist.barrier()  # ← here
    return saved


@right(full_state_asked_for_on_rank_0, gives=[[0.0, 0.0, 1.0, 1.0], None])
def full_state_gathered_by_all():
    shard = torch.full((2,), float(dist.get_rank()))
    whole = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(whole, shard)
    saved = torch.cat(whole).tolist() if dist.get_rank() == 0 else None
    dist.barrier()
    return saved


# pytorch/ignite#2623: the optimizer's shards are sent to the rank that saves, which asks alone
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def optimizer_state_consolidated_on_rank_0():
    def consolidate(momentum):
        found = []
        for owner in range(dist.get_world_size()):
            part = momentum.clone()
            dist.broadcast(part, owner)  # ← here
            found.append(part.item())
        return found

    momentum = torch.tensor([float(dist.get_rank())])
    return consolidate(momentum) if dist.get_rank() == 0 else None


@right(optimizer_state_consolidated_on_rank_0, gives=[[0.0, 1.0, 2.0], None, None])
def optimizer_state_consolidated_by_all():
    def consolidate(momentum):
        found = []
        for owner in range(dist.get_world_size()):
            part = momentum.clone()
            dist.broadcast(part, owner)
            found.append(part.item())
        return found

    found = consolidate(torch.tensor([float(dist.get_rank())]))
    return found if dist.get_rank() == 0 else None


# dvl-tum/center-group#2: a metric is synchronized by the only rank that logs it
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def metric_logged_by_rank_0_in_step_with_all():
    def log(value, synchronize):
        if synchronize:
            dist.all_reduce(value)  # ← here
        return value.item()

    accuracy = torch.tensor([0.5])
    return log(accuracy, synchronize=True) if dist.get_rank() == 0 else None


@right(metric_logged_by_rank_0_in_step_with_all, gives=[0.5, None])
def metric_logged_by_rank_0_alone():
    def log(value, synchronize):
        if synchronize:
            dist.all_reduce(value)
        return value.item()

    accuracy = torch.tensor([0.5])
    return log(accuracy, synchronize=False) if dist.get_rank() == 0 else None


# Different numbers of steps. --------------------------------------------------------


# pytorch/pytorch#38174, microsoft/PyMarlin#80: DDP, and one batch more on one rank
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def ddp_with_one_batch_more():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    for _ in range(2 + dist.get_rank()):
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()  # ← here
    return model.module.weight.grad.tolist()


@right(ddp_with_one_batch_more, gives=[[[3.0, 3.0]], [[3.0, 3.0]]])
def ddp_with_as_many_batches():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    for _ in range(3):
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
    return model.module.weight.grad.tolist()


# k2-fsa/snowfall#152: shares of a data set are rounded up, and the last rank gets fewer
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def shares_rounded_up():
    rank, n, utterances = dist.get_rank(), dist.get_world_size(), 7
    share = -(-utterances // n)
    first, total = rank * share, torch.zeros(1)
    for one in range(first, min(first + share, utterances)):
        gradient = torch.tensor([float(one)])
        dist.all_reduce(gradient)  # ← here
        total += gradient
    return total.item()


@right(shares_rounded_up, gives=[15.0, 15.0, 15.0])
def shares_rounded_down():
    rank, n, utterances = dist.get_rank(), dist.get_world_size(), 7
    share = utterances // n
    first, total = rank * share, torch.zeros(1)
    for one in range(first, first + share):
        gradient = torch.tensor([float(one)])
        dist.all_reduce(gradient)
        total += gradient
    return total.item()


# pytorch/pytorch#33148: a flag says whether all have a next batch, and is not asked at the end
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def flag_that_is_not_asked_at_the_end():
    batches = [1.0] * (2 + dist.get_rank())
    done = 0
    for batch in batches:
        more = torch.tensor([1])
        dist.all_reduce(more, dist.ReduceOp.MIN)  # ← here
        if not more.item():
            break
        done += batch
    return done


@right(flag_that_is_not_asked_at_the_end, gives=[2.0, 2.0])
def flag_that_is_asked_once_more():
    batches = iter([1.0] * (2 + dist.get_rank()))
    done = 0.0
    while True:
        batch = next(batches, None)
        more = torch.tensor([int(batch is not None)])
        dist.all_reduce(more, dist.ReduceOp.MIN)
        if not more.item():
            return done
        done += batch


# huggingface/transformers#17478: a rank stops early by its own metric, and goes to the last barrier
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def early_stop_by_ones_own_metric():
    rank, steps = dist.get_rank(), 0
    for step in range(3):
        dist.all_reduce(torch.ones(1))
        steps += 1
        if rank == 1 and step == 1:
            break
    dist.barrier()  # ← here
    return steps


@right(early_stop_by_ones_own_metric, gives=[2, 2])
def early_stop_by_a_common_decision():
    rank, steps = dist.get_rank(), 0
    for step in range(3):
        dist.all_reduce(torch.ones(1))
        steps += 1
        stop = torch.tensor([int(rank == 1 and step == 1)])
        dist.all_reduce(stop, dist.ReduceOp.MAX)
        if stop.item():
            break
    dist.barrier()
    return steps


# dylanyunlon/Neuron_SP#73: barriers around every micro-batch, of which ranks have other numbers
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def barrier_in_every_micro_batch():
    micro_batches, done = [4, 2, 2][dist.get_rank()], 0
    for _ in range(micro_batches):
        dist.barrier()  # ← here
        done += 1
    return done


@right(barrier_in_every_micro_batch, gives=[4, 2, 2])
def barrier_before_all_micro_batches():
    micro_batches, done = [4, 2, 2][dist.get_rank()], 0
    dist.barrier()
    for _ in range(micro_batches):
        done += 1
    return done


# mosaicml/composer#2117: a rank without memory tries again with micro-batches of half the size
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def retry_in_smaller_micro_batches():
    parts = 1 if dist.get_rank() == 0 else 2
    total = torch.zeros(1)
    for part in torch.ones(4).chunk(parts):
        gradient = part.sum().reshape(1)
        dist.all_reduce(gradient)  # ← here
        total += gradient
    return total.item()


@right(retry_in_smaller_micro_batches, gives=[8.0, 8.0])
def retry_of_all_in_smaller_micro_batches():
    parts = torch.tensor([1 if dist.get_rank() == 0 else 2])
    dist.all_reduce(parts, dist.ReduceOp.MAX)
    total = torch.zeros(1)
    for part in torch.ones(4).chunk(parts.item()):
        gradient = part.sum().reshape(1)
        dist.all_reduce(gradient)
        total += gradient
    return total.item()


# pytorch/pytorch#28257: rank 0 has fewer steps, ends, and takes what it serves with it
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def server_that_ends_with_its_own_steps():
    rank, steps, seen = dist.get_rank(), [1, 1, 2], []
    if rank == 0:
        for _ in range(steps[0]):
            for worker in (1, 2):
                gradient = torch.zeros(1)
                dist.recv(gradient, worker)
                seen.append(gradient.item())
        return seen
    for step in range(steps[rank]):
        dist.send(torch.tensor([10.0 * rank + step]), 0)  # ← here
    return seen


@right(server_that_ends_with_its_own_steps, gives=[[10.0, 20.0, 21.0], [], []])
def server_that_serves_every_step():
    rank, steps, seen = dist.get_rank(), [1, 1, 2], []
    if rank == 0:
        for worker in (1, 2):
            for _ in range(steps[worker]):
                gradient = torch.zeros(1)
                dist.recv(gradient, worker)
                seen.append(gradient.item())
        return seen
    for step in range(steps[rank]):
        dist.send(torch.tensor([10.0 * rank + step]), 0)
    return seen


# Steps that a rank skips. -----------------------------------------------------------


# NVIDIA-NeMo/Automodel#2468: a batch without anything to learn is skipped, with its backward
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def batch_skipped_under_ddp():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    for step in range(3):
        usable = not (dist.get_rank() == 1 and step == 2)
        if not usable:
            continue
        model(torch.ones(1, 2)).sum().backward()  # ← here
    return model.module.weight.grad.sum().item()


@right(batch_skipped_under_ddp, gives=[5.0, 5.0])
def batch_of_no_weight_under_ddp():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    for step in range(3):
        usable = not (dist.get_rank() == 1 and step == 2)
        (float(usable) * model(torch.ones(1, 2)).sum()).backward()
    return model.module.weight.grad.sum().item()


# pytorch/pytorch#44353: an exception is caught, the batch dropped, and its collective with it
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def batch_dropped_after_an_exception():
    rank, steps = dist.get_rank(), 0
    for step in range(2):
        try:
            if rank == 2 and step == 0:
                raise MemoryError("no room for this batch")
            dist.all_reduce(torch.ones(1))  # ← here
            steps += 1
        except MemoryError:
            continue
    return steps


@right(batch_dropped_after_an_exception, gives=[2, 2, 2])
def batch_of_zeros_after_an_exception():
    rank, steps = dist.get_rank(), 0
    for step in range(2):
        gradient = torch.ones(1)
        try:
            if rank == 2 and step == 0:
                raise MemoryError("no room for this batch")
        except MemoryError:
            gradient.zero_()
        dist.all_reduce(gradient)
        steps += 1
    return steps


# ecmwf/WeatherGenerator#2718, Lightning-AI/pytorch-lightning#5243: a loss that is no number is
# skipped where it comes up
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def loss_that_is_no_number_skipped_by_its_rank():
    loss = torch.tensor([1.0 if dist.get_rank() == 0 else float("nan")])
    if not loss.isnan().item():
        dist.all_reduce(loss)  # ← here
    dist.barrier()  # ← here
    return not loss.isnan().item()


@right(loss_that_is_no_number_skipped_by_its_rank, gives=[False, False])
def loss_that_is_no_number_skipped_by_all():
    loss = torch.tensor([1.0 if dist.get_rank() == 0 else float("nan")])
    skip = loss.isnan().int()
    dist.all_reduce(skip, dist.ReduceOp.MAX)
    if not skip.item():
        dist.all_reduce(loss)
    dist.barrier()
    return not skip.item()


# OpenTSLM/OpenTSLM#49: gradients are averaged where there are some
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def gradients_averaged_where_there_are_some():
    first, second = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    loss = first * 2 if dist.get_rank() == 0 else first * 2 + second * 3
    loss.sum().backward()
    for parameter in (first, second):
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)  # ← here
    return first.grad.item()


@right(gradients_averaged_where_there_are_some, gives=[[4.0, 3.0], [4.0, 3.0]])
def gradients_averaged_everywhere():
    first, second = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    loss = first * 2 if dist.get_rank() == 0 else first * 2 + second * 3
    loss.sum().backward()
    for parameter in (first, second):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
    return [first.grad.item(), second.grad.item()]


# pytorch/pytorch#44957: a layer that synchronizes its statistics is not called in the first frame
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def synchronized_layer_that_one_rank_skips():
    def normalize(x):
        mean = x.mean().reshape(1)
        dist.all_reduce(mean)  # ← here
        return x - mean / dist.get_world_size()

    frame = dist.get_rank()  # the first of its video on rank 0
    x = torch.full((2,), float(frame))
    if frame != 0:
        x = normalize(x)
    gathered = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, x)
    return torch.stack(gathered).sum().item()


@right(synchronized_layer_that_one_rank_skips, gives=[1.0, 1.0])
def synchronized_layer_that_all_call():
    def normalize(x):
        mean = x.mean().reshape(1)
        dist.all_reduce(mean)
        return x - mean / dist.get_world_size()

    frame = dist.get_rank()
    x = torch.full((2,), float(frame))
    normalized = normalize(x)
    if frame != 0:
        x = normalized
    gathered = [torch.zeros(2) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, x)
    return torch.stack(gathered).sum().item()


# pytorch/pytorch#48988: statistics are synchronized in evaluation as well, which one rank does
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def statistics_synchronized_in_evaluation():
    def normalize(x, training):
        mean = x.mean().reshape(1)
        dist.all_reduce(mean)  # ← here
        return x - mean / dist.get_world_size()

    trained = normalize(torch.ones(2), training=True)
    if dist.get_rank() == 0:
        return normalize(torch.ones(2), training=False).sum().item()
    return trained.sum().item()


@right(statistics_synchronized_in_evaluation, gives=[0.0, 0.0])
def statistics_of_ones_own_in_evaluation():
    def normalize(x, training):
        mean = x.mean().reshape(1)
        if training:
            dist.all_reduce(mean)
            mean = mean / dist.get_world_size()
        return x - mean

    trained = normalize(torch.ones(2), training=True)
    if dist.get_rank() == 0:
        return normalize(torch.ones(2), training=False).sum().item()
    return trained.sum().item()


# sgl-project/sgl-kernel-npu#69: a rank that has received no tokens does not combine
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def combine_left_out_without_tokens():
    rank, n = dist.get_rank(), dist.get_world_size()
    counts = torch.tensor([0, 2])  # tokens of each rank for each expert
    arriving = torch.zeros(n, dtype=torch.int64)
    dist.all_to_all_single(arriving, counts)
    tokens = torch.ones(int(arriving.sum()))
    if len(tokens):
        back = torch.zeros(int(counts.sum()))
        dist.all_to_all_single(  # ← here
            back, tokens, counts.tolist(), arriving.tolist()
        )
        return back.tolist()
    return [float(rank)]


@right(combine_left_out_without_tokens, gives=[[1.0, 1.0], [1.0, 1.0]])
def combine_with_no_tokens():
    n = dist.get_world_size()
    counts = torch.tensor([0, 2])
    arriving = torch.zeros(n, dtype=torch.int64)
    dist.all_to_all_single(arriving, counts)
    tokens = torch.ones(int(arriving.sum()))
    back = torch.zeros(int(counts.sum()))
    dist.all_to_all_single(back, tokens, counts.tolist(), arriving.tolist())
    return back.tolist()


# NVIDIA-NeMo/Automodel#935: no expert of a rank is active, and its gradients are not reduced
@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def gradient_of_an_idle_expert_left_out():
    active = dist.get_rank() != 1
    expert = torch.ones(2, requires_grad=True)
    if active:
        (expert * 3).sum().backward()
        dist.all_reduce(expert.grad)  # ← here
        return expert.grad.tolist()
    return [0.0, 0.0]


@right(gradient_of_an_idle_expert_left_out, gives=[[6.0, 6.0]] * 3)
def gradient_of_an_idle_expert_is_zero():
    active = dist.get_rank() != 1
    expert = torch.ones(2, requires_grad=True)
    (expert * 3 * float(active)).sum().backward()
    dist.all_reduce(expert.grad)
    return expert.grad.tolist()


# Other sizes, types and orders. -----------------------------------------------------


# pytorch/pytorch#70037, Lightning-AI/pytorch-lightning#7773: ranks gather tensors of other lengths
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="sometimes")
def predictions_of_other_lengths_gathered():
    mine = torch.ones(2 + dist.get_rank())
    gathered = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, mine)  # ← here
    return torch.cat(gathered).sum().item()


@right(predictions_of_other_lengths_gathered, gives=[5.0, 5.0])
def predictions_gathered_at_the_longest_length():
    mine = torch.ones(2 + dist.get_rank())
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, torch.tensor([len(mine)]))
    longest = int(max(lengths))
    padded = torch.zeros(longest)
    padded[: len(mine)] = mine
    gathered = [torch.zeros(longest) for _ in lengths]
    dist.all_gather(gathered, padded)
    return sum(one[: int(n)].sum().item() for one, n in zip(gathered, lengths, strict=True))


# pytorch/pytorch#174844: each rank pads to a length of its own
@wrong(Diagnosis.SIZE_MISMATCH, ranks=3, hangs="sometimes")
def sequences_padded_to_ones_own_multiple():
    length = [5, 6, 9][dist.get_rank()]
    padded = torch.zeros(-(-length // 4) * 4)
    whole = torch.zeros(dist.get_world_size() * len(padded))
    dist.all_gather_into_tensor(whole, padded)  # ← here
    return len(whole)


@right(sequences_padded_to_ones_own_multiple, gives=[36, 36, 36])
def sequences_padded_to_the_longest():
    length = torch.tensor([[5, 6, 9][dist.get_rank()]])
    dist.all_reduce(length, dist.ReduceOp.MAX)
    padded = torch.zeros(-(-int(length) // 4) * 4)
    whole = torch.zeros(dist.get_world_size() * len(padded))
    dist.all_gather_into_tensor(whole, padded)
    return len(whole)


# NVIDIA/nccl#1417: ranks reduce tensors of other sizes, which may end and be wrong
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="sometimes")
def sums_of_other_sizes():
    mine = torch.ones(4 - dist.get_rank())
    dist.all_reduce(mine)  # ← here
    return mine.tolist()


@right(sums_of_other_sizes, gives=[[2.0, 2.0, 2.0]] * 2)
def sums_of_one_size():
    mine = torch.ones(4 - dist.get_rank())[:3].clone()
    dist.all_reduce(mine)
    return mine.tolist()


# EleutherAI/bergson#227: batches are padded to the longest of their own rank
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="sometimes")
def activations_padded_by_each_rank():
    lengths = [[3, 1], [2, 2]][dist.get_rank()]
    activations = torch.ones(len(lengths), max(lengths))
    dist.all_reduce(activations)  # ← here
    return list(activations.shape)


@right(activations_padded_by_each_rank, gives=[[2, 3], [2, 3]])
def activations_padded_by_all():
    lengths = [[3, 1], [2, 2]][dist.get_rank()]
    longest = torch.tensor([max(lengths)])
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    activations = torch.ones(len(lengths), int(longest))
    dist.all_reduce(activations)
    return list(activations.shape)


# modelscope/ms-swift#9550, pytorch/pytorch#150248: a metric is a float of numpy's on one rank
@wrong(Diagnosis.DTYPE_MISMATCH, ranks=2, hangs="sometimes")
def metric_of_another_type_on_one_rank():
    dtype = torch.float32 if dist.get_rank() == 0 else torch.float64
    metric = torch.tensor([0.5, 1.0], dtype=dtype)
    dist.all_reduce(metric)  # ← here
    return metric.tolist()


@right(metric_of_another_type_on_one_rank, gives=[[1.0, 2.0], [1.0, 2.0]])
def metric_of_one_type():
    dtype = torch.float32 if dist.get_rank() == 0 else torch.float64
    metric = torch.tensor([0.5, 1.0], dtype=dtype).double()
    dist.all_reduce(metric)
    return metric.tolist()


# pytorch/pytorch#122903, #114304: names of a state come in another order on another rank
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="sometimes")
def state_in_the_order_of_its_rank():
    sizes = {"weight": 4, "bias": 2}
    names = list(sizes) if dist.get_rank() == 0 else list(reversed(sizes))
    found = {}
    for name in names:
        found[name] = torch.full((sizes[name],), float(dist.get_rank()))
        dist.broadcast(found[name], 0)  # ← here
    return sum(found[name].sum().item() for name in sizes)


@right(state_in_the_order_of_its_rank, gives=[0.0, 0.0])
def state_in_the_order_of_its_names():
    sizes = {"weight": 4, "bias": 2}
    names = list(sizes) if dist.get_rank() == 0 else list(reversed(sizes))
    found = {}
    for name in sorted(names):
        found[name] = torch.full((sizes[name],), float(dist.get_rank()))
        dist.broadcast(found[name], 0)
    return sum(found[name].sum().item() for name in sizes)


# huggingface/accelerate#3982: one rank goes through the entries it has, the others through names
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="always")
def entries_that_only_one_rank_has():
    state = {"weight": 4, "bias": 2}
    if dist.get_rank() == 0:
        state = {"weight": 4, "weight.scale": 1, "bias": 2}
    for size in state.values():
        dist.broadcast(torch.ones(size), 0)  # ← here
    return len(state)


@right(entries_that_only_one_rank_has, gives=[3, 2])
def entries_that_all_ranks_have():
    state = {"weight": 4, "bias": 2}
    if dist.get_rank() == 0:
        state = {"weight": 4, "weight.scale": 1, "bias": 2}
    for name in ("weight", "bias"):
        dist.broadcast(torch.ones(state[name]), 0)
    return len(state)


# Lightning-AI/pytorch-lightning#19106: ranks have logged other metrics
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def metrics_that_one_rank_has_not_logged():
    metrics = {"loss": 1.0, "accuracy": 0.5}
    if dist.get_rank() == 1:
        del metrics["accuracy"]
    means = {}
    for name, value in metrics.items():
        total = torch.tensor([value])
        dist.all_reduce(total)  # ← here
        means[name] = total.item() / dist.get_world_size()
    return means


@right(metrics_that_one_rank_has_not_logged, gives=[["accuracy", "loss"]] * 2)
def metrics_by_all_names():
    metrics = {"loss": 1.0, "accuracy": 0.5}
    if dist.get_rank() == 1:
        del metrics["accuracy"]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sorted(metrics))
    names = sorted({name for one in everyone for name in one})
    for name in names:
        dist.all_reduce(torch.tensor([metrics.get(name, 0.0)]))
    return names


# pytorch/pytorch#5506, #5811: one tensor stands n times in the list that is gathered into
@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def one_tensor_n_times_in_a_list():
    parts = [torch.zeros(1)] * dist.get_world_size()
    dist.all_gather(parts, torch.tensor([float(dist.get_rank())]))  # ← here
    return [part.item() for part in parts]


@right(one_tensor_n_times_in_a_list, gives=[[0.0, 1.0, 2.0]] * 3)
def n_tensors_in_a_list():
    parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.tensor([float(dist.get_rank())]))
    return [part.item() for part in parts]


# Messages. --------------------------------------------------------------------------


# NVIDIA/nccl#479: both neighbours send before they receive
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def neighbours_that_both_send_first():
    mine, theirs = torch.tensor([float(dist.get_rank())]), torch.zeros(1)
    dist.send(mine, 1 - dist.get_rank())  # ← here
    dist.recv(theirs, 1 - dist.get_rank())
    return theirs.item()


@right(neighbours_that_both_send_first, gives=[1.0, 0.0])
def neighbours_in_one_batch():
    mine, theirs = torch.tensor([float(dist.get_rank())]), torch.zeros(1)
    other = 1 - dist.get_rank()
    pair = [dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, theirs, other)]
    for request in dist.batch_isend_irecv(pair):
        request.wait()
    return theirs.item()


# pytorch/pytorch#172668: two stages of a looped pipeline send one activation before they take the
# next one
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def pipeline_that_sends_before_it_takes():
    other, taken = 1 - dist.get_rank(), []
    for micro_batch in range(2):
        activation = torch.tensor([10.0 * dist.get_rank() + micro_batch])
        dist.send(activation, other)  # ← here
        arrived = torch.zeros(1)
        dist.recv(arrived, other)
        taken.append(arrived.item())
    return taken


@right(pipeline_that_sends_before_it_takes, gives=[[10.0, 11.0], [0.0, 1.0]])
def pipeline_whose_lower_rank_takes_first():
    other, taken = 1 - dist.get_rank(), []
    for micro_batch in range(2):
        activation = torch.tensor([10.0 * dist.get_rank() + micro_batch])
        arrived = torch.zeros(1)
        if dist.get_rank() < other:
            dist.recv(arrived, other)
            dist.send(activation, other)
        else:
            dist.send(activation, other)
            dist.recv(arrived, other)
        taken.append(arrived.item())
    return taken


# NVIDIA/Megatron-LM#5100: a ring of stages exchanges forward and backward in one fixed order
@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def ring_of_stages_in_one_fixed_order():
    rank, n = dist.get_rank(), dist.get_world_size()
    forward, backward = torch.tensor([float(rank)]), torch.tensor([-float(rank)])
    dist.send(forward, (rank + 1) % n)  # ← here
    dist.recv(forward, (rank - 1) % n)
    dist.send(backward, (rank - 1) % n)
    dist.recv(backward, (rank + 1) % n)
    return [forward.item(), backward.item()]


@right(
    ring_of_stages_in_one_fixed_order,
    gives=[[3.0, -1.0], [0.0, -2.0], [1.0, -3.0], [2.0, 0.0]],
)
def ring_of_stages_even_and_odd():
    rank, n = dist.get_rank(), dist.get_world_size()
    arrived = [torch.zeros(1), torch.zeros(1)]
    for place, (value, to) in enumerate([(float(rank), 1), (-float(rank), -1)]):
        if rank % 2 == 0:
            dist.send(torch.tensor([value]), (rank + to) % n)
            dist.recv(arrived[place], (rank - to) % n)
        else:
            dist.recv(arrived[place], (rank - to) % n)
            dist.send(torch.tensor([value]), (rank + to) % n)
    return [one.item() for one in arrived]


# jundot/omlx#3521: a stage adds something up with all others before it sends to the one that waits
@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def sum_before_the_message_that_is_waited_for():
    hidden = torch.tensor([3.0])
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(1))
        dist.send(hidden, 0)
    else:
        dist.recv(hidden, 1)  # ← here
        dist.all_reduce(torch.ones(1))
    return hidden.item()


@right(sum_before_the_message_that_is_waited_for, gives=[3.0, 3.0])
def message_before_the_sum():
    hidden = torch.tensor([3.0])
    if dist.get_rank() == 1:
        dist.send(hidden, 0)
    else:
        dist.recv(hidden, 1)
    dist.all_reduce(torch.ones(1))
    return hidden.item()


# NVIDIA/nccl#1192: two of four ranks exchange a message inside a reduction of all
@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def message_and_reduction_in_other_orders():
    rank, note = dist.get_rank(), torch.zeros(1)
    if rank == 3:
        dist.recv(note, 2)  # ← here
    dist.reduce(torch.ones(1), 0)  # ← here
    if rank == 2:
        dist.send(torch.ones(1), 3)
    return note.item()


@right(message_and_reduction_in_other_orders, gives=[0.0, 0.0, 0.0, 1.0])
def message_after_the_reduction():
    rank, note = dist.get_rank(), torch.zeros(1)
    dist.reduce(torch.ones(1), 0)
    if rank == 2:
        dist.send(torch.ones(1), 3)
    if rank == 3:
        dist.recv(note, 2)
    return note.item()


# pytorch/gloo#308: the tensor of a send in flight is filled with the next value
@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def next_value_into_a_send_in_flight():
    if dist.get_rank() == 0:
        value, requests = torch.zeros(1), []
        for step in range(3):
            value.fill_(step)  # ← here
            requests.append(dist.isend(value, 1, tag=step))  # ← here
        for request in requests:
            request.wait()  # ← here
        return []
    taken = []
    for step in range(3):
        value = torch.zeros(1)
        dist.recv(value, 0, tag=step)
        taken.append(value.item())
    return taken


@right(next_value_into_a_send_in_flight, gives=[[], [0.0, 1.0, 2.0]])
def every_send_has_a_tensor():
    if dist.get_rank() == 0:
        values = [torch.tensor([float(step)]) for step in range(3)]
        requests = [dist.isend(value, 1, tag=step) for step, value in enumerate(values)]
        for request in requests:
            request.wait()
        return []
    taken = []
    for step in range(3):
        value = torch.zeros(1)
        dist.recv(value, 0, tag=step)
        taken.append(value.item())
    return taken


# pytorch/pytorch#30723: what a receive has brought is read without waiting for it
@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def receive_read_without_a_wait():
    value = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        dist.irecv(value, 1)  # ← here
    else:
        dist.send(value, 0)
    return value.item()


@right(receive_read_without_a_wait, gives=[1.0, 1.0])
def receive_polled_until_it_is_complete():
    value = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        request = dist.irecv(value, 1)
        while not request.is_completed():
            pass
    else:
        dist.send(value, 0)
    return value.item()


# huggingface/picotron#5: only the last stage comes to the line that synchronizes gradients
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def gradients_synchronized_by_some_stages():
    stage, warm_up = dist.get_rank(), [1, 0][dist.get_rank()]
    gradient = torch.tensor([float(stage)])
    for step in range(warm_up):
        if step == warm_up - 1:
            dist.all_reduce(gradient)  # ← here
    dist.barrier()  # ← here
    return gradient.item()


@right(gradients_synchronized_by_some_stages, gives=[1.0, 1.0])
def gradients_synchronized_by_all_stages():
    stage = dist.get_rank()
    gradient = torch.tensor([float(stage)])
    dist.all_reduce(gradient)
    dist.barrier()
    return gradient.item()


# Groups. ----------------------------------------------------------------------------


# pytorch/pytorch#130102, #25390, #38375: each rank makes the group of its own pair alone
@wrong(Diagnosis.ORDER_MISMATCH, ranks=4, hangs="sometimes")
def only_the_group_of_ones_own_pair():
    pair = [0, 3] if dist.get_rank() in (0, 3) else [1, 2]
    group = dist.new_group(pair)  # ← here
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total, group=group)
    return total.item()


@right(only_the_group_of_ones_own_pair, gives=[3.0, 3.0, 3.0, 3.0])
def the_groups_of_all_pairs():
    total = torch.tensor([float(dist.get_rank())])
    groups = [dist.new_group(pair) for pair in ([0, 3], [1, 2])]
    mine = groups[0] if dist.get_rank() in (0, 3) else groups[1]
    dist.all_reduce(total, group=mine)
    return total.item()


# cmriat/Etha#111: two sides make the groups of two directions in the order of their own direction
@wrong(Diagnosis.ORDER_MISMATCH, ranks=3, hangs="sometimes")
def groups_in_the_order_of_ones_own_direction():
    routes = [[0, 1], [1, 2]]
    if dist.get_rank() == 2:
        routes.reverse()
    groups = {tuple(route): dist.new_group(route) for route in routes}  # ← here
    total = torch.ones(1)
    for route in ((0, 1), (1, 2)):
        if dist.get_rank() in route:
            dist.all_reduce(total, group=groups[route])
    return total.item()


@right(groups_in_the_order_of_ones_own_direction, gives=[2.0, 3.0, 3.0])
def groups_in_one_order():
    groups = {route: dist.new_group(list(route)) for route in ((0, 1), (1, 2))}
    total = torch.ones(1)
    for route in ((0, 1), (1, 2)):
        if dist.get_rank() in route:
            dist.all_reduce(total, group=groups[route])
    return total.item()


# vllm-project/vllm-omni#6264: a source is named by its place in the group, and not by its rank
@wrong(Diagnosis.EXCEPTION, ranks=4, hangs="never")
def source_named_by_its_place_in_the_group():
    group = dist.new_group([1, 3])
    value = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() in (1, 3):
        dist.broadcast(value, 0, group=group)  # ← here
    return value.item()


@right(source_named_by_its_place_in_the_group, gives=[0.0, 1.0, 2.0, 1.0])
def source_named_by_its_rank():
    group = dist.new_group([1, 3])
    value = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() in (1, 3):
        dist.broadcast(value, dist.get_global_rank(group, 0), group=group)
    return value.item()


# pytorch/pytorch#175145: two threads of a rank use one group, in the order in which they run
@wrong(Diagnosis.ORDER_MISMATCH, ranks=2, hangs="always")
def two_threads_in_another_order():
    values = [torch.ones(1), torch.full((1,), 2.0)]
    done = threading.Event()

    def second():
        done.wait()
        dist.all_reduce(values[1])  # ← here

    thread = threading.Thread(target=second)
    if dist.get_rank() == 0:
        thread.start()
        dist.broadcast(values[0], 0)  # ← here
        done.set()
    else:
        done.set()
        thread.start()
        thread.join()
        dist.broadcast(values[0], 0)
    thread.join()
    return [value.item() for value in values]


@right(two_threads_in_another_order, gives=[[1.0, 4.0], [1.0, 4.0]])
def two_threads_in_one_order():
    values = [torch.ones(1), torch.full((1,), 2.0)]
    done = threading.Event()

    def second():
        done.wait()
        dist.all_reduce(values[1])

    thread = threading.Thread(target=second)
    thread.start()
    dist.broadcast(values[0], 0)
    done.set()
    thread.join()
    return [value.item() for value in values]


# huggingface/transformers#48162: a loop over a set of names, whose order differs from rank to rank
@wrong(Diagnosis.SIZE_MISMATCH, ranks=2, hangs="sometimes")
def loop_over_a_set_of_names():
    sizes = {"sliding": 1, "full": 2, "linear": 3, "chunked": 4, "local": 5}
    for name in set(sizes):
        dist.broadcast(torch.ones(sizes[name]), 0)  # ← here
    return len(sizes)


@right(loop_over_a_set_of_names, gives=[5, 5])
def loop_over_sorted_names():
    sizes = {"sliding": 1, "full": 2, "linear": 3, "chunked": 4, "local": 5}
    for name in sorted(set(sizes)):
        dist.broadcast(torch.ones(sizes[name]), 0)
    return len(sizes)

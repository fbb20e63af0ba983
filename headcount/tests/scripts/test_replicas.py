"""``run --check replicas``: ranks that drift apart are named, and no rank that may differ is."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
import torch.distributed as dist

import headcount
from headcount.core.events import Replicas, ReplicaStage, ReplicaValue
from headcount.rank.replicas import ReplicaWatch, digest
from headcount.trace.replicas import ReplicaComparison
from scripts.test_scripts import execute

BEGIN = """\
import contextlib, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
loss_of = lambda model: model(torch.randn(3, 4)).pow(2).mean()
def average(parameters, group=None):
    for p in parameters:
        dist.all_reduce(p.grad, group=group)
        p.grad /= dist.get_world_size(group)
"""

# each is trained as it stands; `here` is the step
DDP_STEPS = """\
ddp = DDP(model)
optimizer = torch.optim.AdamW(ddp.parameters())
torch.manual_seed(rank)
for step in range(3):
    {loss}
    optimizer.step()  # here
    optimizer.zero_grad()
"""
BY_HAND = """\
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
torch.manual_seed(rank)
for step in range(3):
    loss_of(model).backward()
    average(model.parameters())
    {change}
    optimizer.step()  # here
    optimizer.zero_grad()
"""

WRONG = {
    "forward_past_the_wrapper": (
        DDP_STEPS.format(loss="loss_of(ddp.module).backward()"),
        2, "the gradient of 0.weight differs between ranks 0 and 1 at step 1 of AdamW",
        "none of these ranks has called all_reduce",
    ),
    "never_synchronised": (
        DDP_STEPS.format(loss="with ddp.no_sync(): loss_of(ddp).backward()"),
        2, "the gradient of 0.weight differs between ranks 0 and 1 at step 1 of AdamW",
        "none of these ranks has called all_reduce",
    ),
    "loaded_on_one": (
        DDP_STEPS.format(loss="loss_of(ddp).backward()").replace(
            "torch.manual_seed(rank)", "if rank == 1: model[2].bias.data += 1"
        ),
        3, "rank 1 holds another value of 2.bias than ranks 0 and 2 before the first step of AdamW",
        "no step has made them differ",
    ),
    "drawn_on_each": (
        "torch.manual_seed(rank); model[0].reset_parameters()\n" + BY_HAND.format(change=""),
        2, "0.weight differs between ranks 0 and 1 before the first step of SGD",
        "of 4 compared, so does 0.bias",
    ),
    "one_gradient_left_out": (
        BY_HAND.format(change="if step == 2: model[2].weight.grad += rank"),
        2, "the gradient of 2.weight differs between ranks 0 and 1 at step 3 of SGD",
        "all_reduce was called 4 times in their group since the step before",
    ),
    "another_learning_rate": (
        BY_HAND.format(change="if rank == 2: optimizer.param_groups[0]['lr'] = 0.2"),
        3, "rank 2 holds another value of 0.weight than ranks 0 and 1 after step 1 of SGD",
        "is the step itself another one",
    ),
    "state_of_one": (
        BY_HAND.format(
            change="if step and not rank: optimizer.state[model[2].bias]['momentum_buffer'] *= 0"
        ).replace("0.1, momentum", "0.0, momentum"),
        2, "momentum_buffer of 2.bias differs between ranks 0 and 1 after step 2 of SGD", "",
    ),
    "in_a_group": (
        "groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]\nmine = groups[rank // 2]\n"
        + BY_HAND.format(change="if step and rank == 3: model[0].bias.grad += 1").replace(
            "parameters())\n    if", "parameters(), mine)\n    if"
        ),
        4, "the gradient of 0.bias differs between ranks 2 and 3 at step 2 of SGD", "",
    ),
    "a_replicated_dtensor": (
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.fsdp import fully_shard\n"
        "mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))\n"
        "fully_shard(model, mesh=mesh)\n"
        "if rank == 3: model[2].bias.to_local().data.add_(1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "loss_of(model).backward()\n"
        "optimizer.step()  # here\n",
        4, "2.bias differs between ranks 1 and 3 before the first step of SGD", "",
    ),
}  # fmt: skip

RIGHT = {
    "dropout_and_batch_norm": (
        "model = torch.nn.Sequential(\n"
        "    torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(), model[2])\n"
        + DDP_STEPS.format(loss="loss_of(ddp).backward()"),
        2,
    ),
    "accumulated": (
        DDP_STEPS.format(
            loss="with ddp.no_sync(): loss_of(ddp).backward()\n    loss_of(ddp).backward()"
        ),
        2,
    ),
    "a_step_with_a_closure": (
        "ddp = DDP(model)\n"
        "optimizer = torch.optim.LBFGS(ddp.parameters(), max_iter=2)\n"
        "torch.manual_seed(rank)\n"
        "x = torch.randn(3, 4)\n"
        "def closure():\n"
        "    optimizer.zero_grad()\n"
        "    loss = ddp(x).pow(2).mean()\n"
        "    loss.backward()\n"
        "    dist.all_reduce(loss.detach_())\n"
        "    return loss\n"
        "for _ in range(2): optimizer.step(closure)\n",
        2,
    ),
    "zero_of_torch": (
        "from torch.distributed.optim import ZeroRedundancyOptimizer\n"
        + DDP_STEPS.format(loss="loss_of(ddp).backward()").replace(
            "torch.optim.AdamW(ddp.parameters())",
            "ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.AdamW)",
        ),
        2,
    ),
    "parts_by_hand": (
        # each rank steps its own half of the parameters, which have the same shapes, and sends it
        "model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])\n"
        "mine = list(model[2 * rank:2 * rank + 2].parameters())\n"
        "optimizer = torch.optim.SGD(mine, 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for step in range(2):\n"
        "    loss_of(model).backward()\n"
        "    average(model.parameters())\n"
        "    optimizer.step()\n"
        "    for at, layer in enumerate(model):\n"
        "        for p in layer.parameters(): dist.broadcast(p.data, at // 2)\n"
        "    model.zero_grad()\n",
        2,
    ),
    "experts": (
        "torch.manual_seed(rank)\n"
        "expert = torch.nn.Linear(2, 2)\n"
        "torch.manual_seed(0)\n"
        "same = torch.nn.Linear(2, 2)  # begins alike, and is each rank's own\n"
        "ddp = DDP(model)\n"
        "parameters = [*ddp.parameters(), *expert.parameters(), *same.parameters()]\n"
        "optimizer = torch.optim.SGD(parameters, 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(2):\n"
        "    loss_of(lambda x: same(expert(ddp(x)))).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "sharded": (
        "from torch.distributed.fsdp import fully_shard\n"
        "fully_shard(model)\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(2):\n"
        "    loss_of(model).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "sharded_and_replicated": (
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.fsdp import fully_shard\n"
        "fully_shard(model, mesh=init_device_mesh('cpu', (2, 2), mesh_dim_names=('r', 's')))\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(2):\n"
        "    loss_of(model).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        4,
    ),
    "rare_averages": (
        # local SGD: the ranks are apart in between, on purpose
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for step in range(4):\n"
        "    loss_of(model).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
        "    if step % 2:\n"
        "        for p in model.parameters():\n"
        "            dist.all_reduce(p.data)\n"
        "            p.data /= size\n",
        2,
    ),
    "local_sgd_of_torch": (
        "from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local\n"
        "own = [dist.new_group([one]) for one in range(size)][rank]\n"
        "ddp = DDP(model)\n"
        "ddp.register_comm_hook(local.PostLocalSGDState(None, own, 1), local.post_localSGD_hook)\n"
        "optimizer = torch.optim.SGD(ddp.parameters(), 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(3):\n"
        "    loss_of(ddp).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "a_hook_that_reduces": (
        "from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power\n"
        "ddp = DDP(model)\n"
        "ddp.register_comm_hook(power.PowerSGDState(None, 1, start_powerSGD_iter=2),"
        " power.powerSGD_hook)\n"
        "optimizer = torch.optim.SGD(ddp.parameters(), 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(4):\n"
        "    loss_of(ddp).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "a_part_of_one_buffer": (
        # gradients lie in one memory, of which the first layer's is reduced and the last's is not
        "body, head = list(model[0].parameters()), list(model[2].parameters())\n"
        "flat = torch.zeros(sum(p.numel() for p in body + head))\n"
        "at = 0\n"
        "for p in body + head:\n"
        "    p.grad = flat[at:at + p.numel()].view_as(p)\n"
        "    at += p.numel()\n"
        "    border = at if p is body[-1] else None or locals().get('border')\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "torch.manual_seed(rank)\n"
        "for _ in range(3):\n"
        "    flat.zero_()\n"
        "    loss_of(model).backward()\n"
        "    dist.all_reduce(flat[:border])\n"
        "    optimizer.step()\n",
        2,
    ),
    "odd_dtypes": (
        "model = torch.nn.ParameterDict({str(at): torch.nn.Parameter(torch.ones(3, dtype=dtype))\n"
        "    for at, dtype in enumerate([torch.bfloat16, torch.float64, torch.complex64])})\n"
        "model['empty'] = torch.nn.Parameter(torch.ones(0))\n"
        "torch.manual_seed(rank)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for _ in range(2):\n"
        "    sum((p * torch.randn(p.shape)).abs().sum() for p in model.values()).backward()\n"
        "    average(model.parameters())\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "sparse_gradients": (
        "table = torch.nn.Embedding(5, 4, sparse=True)  # each rank's own\n"
        "ddp = DDP(model)\n"
        "optimizer = torch.optim.SGD([*table.parameters(), *ddp.parameters()], 0.1)\n"
        "for _ in range(2):\n"
        "    ddp(table(torch.tensor([rank, 3]))).sum().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n",
        2,
    ),
    "an_optimizer_of_one_rank": (
        "if rank == 0:\n"
        "    own = torch.nn.Linear(1, 1)\n"
        "    loss_of = lambda one: one(torch.ones(1)).sum()\n"
        "    first = torch.optim.SGD(own.parameters(), 0.1)\n"
        "    loss_of(own).backward(); first.step()\n"
        "loss_of = lambda model: model(torch.randn(3, 4)).pow(2).mean()\n"
        + DDP_STEPS.format(loss="loss_of(ddp).backward()"),
        2,
    ),
}


def run(text, tmp_path, ranks):
    path = tmp_path / "train.py"
    path.write_text(BEGIN + text + "dist.destroy_process_group()\n")
    (tmp_path / "there").mkdir()
    ran, printed = execute(path, tmp_path / "there", ranks, replicas=True)
    return ran, printed, path.read_text().splitlines()


@pytest.mark.parametrize("name", WRONG)
def test_the_first_tensor_that_differs_is_named_with_rank_and_step(name, tmp_path):
    text, ranks, message, why = WRONG[name]
    ran, printed, lines = run(text, tmp_path, ranks)
    assert ran.failure is not None, printed
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith("# here"))
    assert ran.failure.message.startswith(f"{message} at train.py:{line} (norm")
    assert why in "\n".join(ran.failure.detail)
    assert ran.status() == 3


@pytest.mark.parametrize("name", RIGHT)
def test_what_may_differ_is_not_accused(name, tmp_path):
    ran, printed, _ = run(RIGHT[name][0], tmp_path, RIGHT[name][1])
    assert ran.failure is None, f"{ran.failure}\n{printed}"
    none = name in ("rare_averages", "sharded", "parts_by_hand", "local_sgd_of_torch")
    assert any(one.startswith("no replicas were compared") for one in ran.remarks) is none
    own = [one for one in ran.remarks if one.startswith("buffers are each rank's own")]
    assert len(own) == (name == "dropout_and_batch_norm")


@pytest.mark.parametrize("order", ["[1, 2]", "[1, 2] if rank else [2, 1]"])
def test_shards_of_one_layer_meet_in_fsdp(order, tmp_path):
    text = (
        "from torch.distributed.fsdp import fully_shard\n"
        "net = torch.nn.Sequential(*[torch.nn.Linear(8, 8, bias=False) for _ in range(4)])\n"
        "for block in net: fully_shard(block)\n"
        "fully_shard(net)\n"
        f"order = {order}\n"
        "net[0].set_modules_to_forward_prefetch([net[k] for k in order])\n"
        "net(torch.ones(2, 8)).sum().backward()\n"
    )
    ran, printed, _ = run(text, tmp_path, 2)
    if "rank" in order:
        assert ran.failure is not None, printed
        assert "what FSDP gathers differs between ranks 0 and 1" in ran.failure.message
        assert "(2.weight on rank 0; 1.weight on rank 1)" in ran.failure.message
    else:
        assert ran.failure is None, printed


@pytest.mark.parametrize("drifts", [False, True])
def test_a_function_on_ranks_is_checked_as_a_script_is(drifts, capsys):
    def train():
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1 * (1 + drifts * dist.get_rank()))
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
            for p in model.parameters():
                dist.all_reduce(p.grad)
            optimizer.step()

    done = headcount.run(train, 2, check="replicas", may_fail=True)
    assert (done.failure is not None) is drifts
    if drifts:
        assert "weight differs between ranks 0 and 1 after step 1 of SGD" in done.failure.message
        assert headcount.run(train, 2).failure is None
    assert "warning" not in capsys.readouterr().out


def test_a_function_without_replicas_is_told_so_and_no_other_check_is_known(capsys):
    assert headcount.run(dist.barrier, 2, check="replicas").failure is None
    assert "warning: no replicas were compared" in capsys.readouterr().out
    with pytest.raises(headcount.RequestError, match="check is 'replicas' or nothing, not 'all'"):
        headcount.run(dist.barrier, 2, check="all")


# Hashes. ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_a_hash_tells_what_sums_and_exclusive_ors_do_not(dtype):
    same = torch.ones(9).to(dtype)
    found = [same, torch.zeros(9).to(dtype), torch.ones(10).to(dtype)]
    for at in range(9):
        other = same.clone()
        other[at] = 0
        found.append(other)
    hashes = [digest(one) for one in found]
    assert len({*hashes}) == len(found)
    assert digest(same.clone()) == hashes[0]
    strided = torch.stack([same, torch.zeros(9).to(dtype)], 1)[:, 0]
    assert digest(strided) == hashes[0]


def test_hashes_of_powers_of_two_that_have_changed_places_differ():
    """Their bits differ in a few high places only."""
    hashes = {
        digest(torch.tensor(values)) for values in itertools.permutations([1.0, 2.0, 4.0, 8.0, 0.0])
    }
    assert len(hashes) == 120


# Comparing. -------------------------------------------------------------------------


def report(step, digest, members=(0, 1), stage=ReplicaStage.PARAMETER):
    value = ReplicaValue(0, "w 1", "w", digest, 1.0)
    return Replicas("SGD", 0, step, stage, [list(members)], [1], [value], "", 0)


def test_ranks_may_be_steps_apart():
    compared = ReplicaComparison(2)
    for step in range(30):
        compared.take(0, report(step, step))
    assert compared.compared == 0
    for step in range(30):
        compared.take(1, report(step, step + (step > 28)))
    assert compared.compared == 30
    assert "after step 29 of SGD" in compared.failure.message


def test_of_steps_that_one_rank_alone_makes_few_are_kept():
    """The others would have reported them by then; the last ones are compared at the end."""
    compared = ReplicaComparison(3)
    for step in range(1000):
        compared.take(0, report(step, 0))
        compared.take(1, report(step, step > 998))
    assert compared.compared >= 900
    assert compared.failure is None
    failure, _ = compared.judged(None)
    assert compared.compared == 1000
    assert "after step 999 of SGD" in failure.message


def test_a_step_is_suspected_only_of_what_was_the_same_before_it():
    def why(*seen):
        compared = ReplicaComparison(2)
        for stage, step in (*seen, (ReplicaStage.PARAMETER, 3)):
            for rank in range(2):
                differs = rank * ((stage, step) == (ReplicaStage.PARAMETER, 3))
                compared.take(rank, report(step, differs, stage=stage))
        return compared.failure.detail

    before, gradient = (ReplicaStage.PARAMETER, 2), (ReplicaStage.GRADIENT, 3)
    assert "is the step itself another one" in "".join(why(before, gradient))
    assert why(before) == ()  # as where gradients are sparse
    assert why(gradient) == ()  # as where they have met for the first time
    assert why((ReplicaStage.PARAMETER, 1), gradient) == ()


def test_memory_that_is_reduced_and_freed_is_forgotten_without_a_step():
    kept = ReplicaWatch.__new__(ReplicaWatch)
    kept._reduced, kept._full = {}, 1024
    kept._since, kept._calls = Counter(), Counter()
    again = torch.ones(4)
    for _ in range(5000):
        kept.reduced("world", (0, 1), [torch.ones(4)])
        kept.reduced("world", (0, 1), [again])
    assert len(kept._reduced) <= 1025
    assert sum(len(parts) for _, parts in kept._reduced.values()) <= 1025


def test_the_ranks_of_the_minority_are_named():
    def message(*digests):
        compared = ReplicaComparison(len(digests))
        for rank, one in enumerate(digests):
            compared.take(rank, report(1, one, tuple(range(len(digests)))))
        return compared.failure.message

    assert message(1, 2, 1, 1).startswith("rank 1 holds another value of w than ranks 0, 2 and 3")
    assert message(1, 2, 1, 1, 2).startswith("ranks 1 and 4 hold another value of w than")
    assert message(1, 2, 2, 1).startswith("w differs between ranks 0-3")

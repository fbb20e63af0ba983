"""The oracle of sharded products is autograd on one rank; bytes sent equal the formulas."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks

from grader.api import catalogue
from grader.exercise.cases import Case
from grader.exercise.compare import compare
from support.worlds import play

PRODUCTS = ("column_parallel", "row_parallel")
SPLITS = ("sequence_shard", "sequence_unshard")
SIZES = (1, 2, 3, 4, 5, 8)


def whole(c: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """x and the weight of one rank, in float64."""
    if "x" in c.columns:
        return c.x.double(), torch.cat(list(c.weight_shard), 1).double()
    return torch.cat(list(c.x_shard), -1).double(), torch.cat(list(c.weight_shard), 0).double()


def near(got: torch.Tensor, expected: torch.Tensor) -> bool:
    # sums of up to a thousand terms, added up in another order; bfloat16 is rounded once
    off = min(4096 * torch.finfo(got.dtype).eps, 1e-2)
    return got.shape == expected.shape and torch.allclose(got.double(), expected, off, off)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_oracle_is_autograd_on_one_rank(name, n):
    exercise = catalogue()[name]
    for c in exercise.cases(3, n):
        x, weight = (t.requires_grad_() for t in whole(c))
        y = x @ weight
        of_x, of_weight = torch.autograd.grad((y * c.cotangent.double()).sum(), (x, weight))
        cut = 1 if name == "column_parallel" else 0
        for r, report in enumerate(exercise.values.expected(c)):
            gradients = {
                "x": of_x,
                "x_shard": of_x.tensor_split(n, -1)[r],
                "weight_shard": of_weight.tensor_split(n, cut)[r],
            }
            assert near(report["result"], y.detach())
            assert {f"gradient of {w}" for w in c.wanted} == report.keys() - {"result"}
            assert all(near(report[f"gradient of {w}"], gradients[w]) for w in c.wanted)


@pytest.mark.parametrize("n", SIZES)
def test_cutting_and_joining_are_each_others_gradients(n):
    for c in catalogue()["sequence_shard"].cases(3, n):
        reports = catalogue()["sequence_shard"].values.expected(c)
        assert compare(c.x, torch.cat([r["result"] for r in reports], c.along)) is None
        if c.cotangent is not None:
            joined = torch.cat(list(c.cotangent), c.along)
            assert all(torch.equal(r["gradient of x"], joined) for r in reports)
    for c in catalogue()["sequence_unshard"].cases(3, n):
        reports = catalogue()["sequence_unshard"].values.expected(c)
        assert all(r["result"].shape[c.along] == c.full_length for r in reports)
        if c.cotangent is not None:
            parts = [r["gradient of x_shard"] for r in reports]
            assert torch.equal(torch.cat(parts, c.along), c.cotangent)


@pytest.mark.parametrize("name", PRODUCTS + SPLITS)
def test_awkward_inputs_come_up(name):
    cases = [c for n in SIZES for c in catalogue()[name].cases(3, n)]
    if name == "sequence_shard":  # which cuts for itself
        parts = [c.x.tensor_split(c.n, c.along) for c in cases]
    else:
        parts = [c.columns["weight_shard" if name in PRODUCTS else "x_shard"] for c in cases]
    # a rank has nothing, and another has something
    assert any(len({bool(t.numel()) for t in of_ranks}) == 2 for of_ranks in parts)
    if name in PRODUCTS:
        assert any(not c.wanted for c in cases)
        assert any(c.wanted == ["weight_shard"] for c in cases)  # x requires no gradient
        assert any(c.cotangent.dim() == 3 for c in cases)
    else:
        assert {c.along for c in cases} == {0, 1, 2}
        assert any(c.dim == [] for c in cases)  # by default
        assert any(c.cotangent is None for c in cases)


# Bytes. ---------------------------------------------------------------------------


def _ring(chunks, first, combine):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n - 1):
        out, into = (first - step) % n, (first - step - 1) % n
        heard = torch.empty_like(chunks[into])
        request = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(heard, (rank - 1) % n)
        request.wait()
        chunks[into].copy_(chunks[into] + heard if combine else heard)


def _gathers(x):
    _ring(x.tensor_split(dist.get_world_size()), dist.get_rank(), combine=False)


def _reduces(x):
    chunks = x.tensor_split(dist.get_world_size())
    _ring(chunks, dist.get_rank() - 1, combine=True)
    _ring(chunks, dist.get_rank(), combine=False)


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_sequence_form_sends_as_many_bytes(n, dtype):
    """An all-gather and a reduce-scatter send what an all-reduce sends: 2(n − 1)/n of S."""
    activations = torch.ones(16, 6, dtype=dtype)
    size = activations.nbytes
    gathered = play(_gathers, n, activations.clone()).trace.traffic.max_sent
    reduced = play(_reduces, n, activations.clone()).trace.traffic.max_sent
    assert gathered == (n - 1) * size // n
    assert reduced == 2 * (n - 1) * size // n


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        whole = part.repeat(dist.get_world_size(), 1)
        _gathers(whole)
        return whole

    @staticmethod
    def backward(ctx, grad):
        chunks = grad.clone().chunk(dist.get_world_size())
        _ring(chunks, dist.get_rank() - 1, combine=True)
        return chunks[dist.get_rank()].clone()


class _GatheredTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, a):
        ctx.save_for_backward(part, a)
        return _Gathered.forward(None, part) @ a

    @staticmethod
    def backward(ctx, grad):
        part, a = ctx.saved_tensors
        return _Gathered.backward(None, grad @ a.T), _Gathered.forward(None, part).T @ grad


def _kept(twice, tokens, h):
    """Bytes that a norm and the columns of an MLP keep of activations, parameters aside."""
    n, kept = dist.get_world_size(), {}
    x = torch.randn(tokens // n, h, requires_grad=True)
    a = torch.randn(h, 4 * h // n, requires_grad=True)

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != a.untyped_storage().data_ptr():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        own = torch.nn.functional.layer_norm(x, (h,))
        y = torch.relu(_GatheredTwice.apply(own, a) if twice else _Gathered.apply(own) @ a)
    y.sum().backward()
    return sum(nbytes for nbytes in kept.values() if nbytes >= x.nbytes)


@pytest.mark.parametrize("n", [2, 4])
def test_only_gathering_twice_keeps_no_whole_tensor_and_it_sends_more(n):
    """https://arxiv.org/abs/2205.05198, section 4.2.2."""
    tokens, h = 16, 32
    size = tokens * h * 4
    for twice, kept, sent in ((False, 1 + 5 / n, 2), (True, 6 / n, 3)):
        done = play(_kept, n, twice, tokens, h)
        assert done.results[0].value == kept * size
        assert done.trace.traffic.max_sent == sent * (n - 1) * size // n


@pytest.mark.parametrize("tokens", [8, 32])
@pytest.mark.parametrize("hidden, n", [(16, 2), (16, 4), (32, 4)])
def test_the_overlap_ratio_is_free_of_the_tokens(tokens, hidden, n):
    """Counted bytes over asked-for operations: e(n − 1)/(2h) · F/B."""
    flops, bandwidth, e = 1e15, 4.5e11, 2
    activations = torch.ones(tokens, hidden, dtype=torch.bfloat16)
    nbytes = play(_gathers, n, activations).trace.traffic.max_sent
    ratio = (nbytes / bandwidth) / (2 * tokens * hidden * (hidden // n) / flops)
    assert ratio == pytest.approx(e * (n - 1) / (2 * hidden) * flops / bandwidth)

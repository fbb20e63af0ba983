"""Training with gradients averaged in buckets: inputs, oracle, and what can be asked."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.chapters.averaging import mean, weights
from grader.course.chapters.bucketing import buckets
from grader.course.chapters.replicas import build, loss_of, trainable

__all__ = [
    "ROUNDINGS",
    "STEPS",
    "bucket_bytes",
    "first_step_is_right",
    "must_overlap",
    "own_weights",
    "reductions",
    "reductions_in_one",
    "reductions_of_each",
    "reductions_of_elements",
    "reductions_of_tied",
    "reports",
    "sizes",
    "training",
]

#: Batches of a case: two ways of clearing gradients lie between them.
STEPS = 3

#: Roundings of a gradient of these networks, generously: a few hundred operations.
ROUNDINGS = 1000

_RUNS = (
    ("deep", torch.float32, 100),
    ("one layer", torch.float64, 1 << 20),
    ("deep", torch.float64, 1),
    ("tied weights", torch.float32, 32),
    ("frozen parameters", torch.float32, 64),
    ("unused layers", torch.float32, 60),
    ("experts", torch.float64, 90),
    ("two arguments", torch.float32, 40),
)


def training(draw: Draw) -> Iterator[Case]:
    """Networks of several kinds, with weights and batches that differ by rank."""
    for architecture, dtype, cap in _RUNS:
        batches = [draw.tensor(Kind(dtype, (draw.n, 2, 4))) for _ in range(STEPS)]
        if architecture == "experts":
            for step, batch in enumerate(batches):
                for r in draw.ranks:
                    # no rank takes the last expert; and not all take the same one
                    batch[r][0, 0] = (r + step) % 2
        yield draw.case(
            f"{architecture}, buckets of {cap} bytes",
            architecture=architecture,
            dtype=str(dtype).removeprefix("torch."),
            bucket_bytes=cap,
            state=weights(draw, architecture, dtype),
            batches=PerRank([batch[r] for batch in batches] for r in draw.ranks),
        )


def _local(c: Case, rank: int, state: Sequence[torch.Tensor], x: torch.Tensor) -> dict[str, Any]:
    """The loss and the gradients of one rank alone."""
    module = build(c.architecture, getattr(torch, c.dtype), state)
    loss = loss_of(module, c.architecture, x)
    loss.backward()  # type: ignore[no-untyped-call]
    return {
        "loss": loss.detach(),
        **{
            f"gradient of {name}": torch.zeros_like(p) if p.grad is None else p.grad
            for name, p in trainable(module).items()
        },
    }


def reports(
    c: Case, combine: Callable[[list[torch.Tensor], int], torch.Tensor], synchronised: bool = True
) -> list[dict[str, Any]]:
    """What ranks report if gradients become what ``combine`` makes of all ranks'."""
    states = [c.state[0 if synchronised else r] for r in c.ranks]
    steps = [
        [_local(c, r, states[r], c.batches[r][step]) for r in c.ranks] for step in range(STEPS)
    ]
    like = build(c.architecture, getattr(torch, c.dtype), c.state[0])
    names = [name for name, _ in like.named_parameters()]
    return [
        {
            "is a module": True,
            "weights": dict(zip(names, states[r], strict=True)),
            **{
                f"step {number}": {
                    "loss": locals_[r]["loss"],
                    **{
                        key: combine([one[key] for one in locals_], r)
                        for key in locals_[r]
                        if key != "loss"
                    },
                }
                for number, locals_ in enumerate(steps, 1)
            },
            "parameters seen by an optimizer": len(names),
        }
        for r in c.ranks
    ]


def sizes(c: Case) -> Iterator[Any]:
    """How large values may have been before they cancelled, in the form of the reports."""
    for report in reports(c, lambda gs, _: mean([g.abs() for g in gs]) + 1.0):
        yield {
            key: {name: v.abs() + 1.0 for name, v in value.items()}
            if key.startswith("step")
            else value
            for key, value in report.items()
        }


def bucket_bytes(c: Case) -> list[int]:
    """Bytes of each bucket of the network of a case."""
    module: nn.Module = build(c.architecture, getattr(torch, c.dtype), c.state[0])
    sizes = [p.nbytes for p in trainable(module).values()]
    return [sum(sizes[i] for i in bucket) for bucket in buckets(sizes, c.bucket_bytes)]


def reductions(c: Case) -> int:
    """All-reduces of all ranks in all steps."""
    return c.n * STEPS * len(bucket_bytes(c))


def _network(c: Case) -> nn.Module:
    return build(c.architecture, getattr(torch, c.dtype), c.state[0])


def reductions_of_elements(c: Case) -> int:
    """As many if buckets were filled by elements, not bytes."""
    sizes = [p.numel() for p in trainable(_network(c)).values()]
    return c.n * STEPS * len(buckets(sizes, c.bucket_bytes))


def reductions_in_one(c: Case) -> int:
    """As many if there were one bucket."""
    return c.n * STEPS


def reductions_of_each(c: Case) -> int:
    """As many if every parameter were a bucket."""
    return c.n * STEPS * len(trainable(_network(c)))


def reductions_of_tied(c: Case) -> int:
    """As many if tied weights were as many parameters as they have names."""
    every = _network(c).named_parameters(remove_duplicate=False)
    sizes = [p.nbytes for _, p in every if p.requires_grad]
    return c.n * STEPS * len(buckets(sizes, c.bucket_bytes))


def must_overlap(c: Case) -> int:
    """Ranks that can have a bucket in flight before their last gradient is ready."""
    # where a parameter is not used, the first bucket may become full at the very end only
    always = c.architecture not in ("unused layers", "experts")
    return c.n if always and len(bucket_bytes(c)) > 1 else 0


def first_step_is_right(c: Case, actual: Sequence[Any]) -> bool:
    """Whether the gradients of the first batch are right on all ranks."""
    expected = reports(c, lambda gs, _: mean(gs))
    return all(
        isinstance(found, dict)
        and all(
            isinstance(found["step 1"].get(name), torch.Tensor)
            and torch.allclose(found["step 1"][name], value, rtol=1e-4, atol=1e-4)
            for name, value in want["step 1"].items()
        )
        for found, want in zip(actual, expected, strict=True)
    )


def own_weights(c: Case, actual: Sequence[Any]) -> bool:
    """Whether a rank still has other weights than rank 0's after construction."""
    return any(
        not torch.equal(held, start)
        for report in actual
        if isinstance(report, dict)
        for held, start in zip(report["weights"].values(), c.state[0], strict=True)
    )

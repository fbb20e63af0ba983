"""Every length and every dtype of the contract is drawn, at every world size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest
import torch

from grader.api import catalogue
from grader.exercise.cases import Case, PerRank
from grader.exercise.declaration import STANDARD_SIZES

LENGTHS: dict[str, Callable[[int], int]] = {
    "0": lambda n: 0,
    "1": lambda n: 1,
    "n − 1": lambda n: n - 1,
    "n": lambda n: n,
    "n + 1": lambda n: n + 1,
    "7": lambda n: 7,
    "1000": lambda n: 1000,
}
#: Cases at one world size.
MOST = 10
FLOATING = frozenset({torch.float32, torch.float64, torch.bfloat16})
DTYPES = FLOATING | {torch.int64}

#: A dtype and a number of elements (of rows, where rows are what is shared out).
Drawn = tuple[torch.dtype, int]


@dataclass(frozen=True)
class Sweep:
    """What the cases of an exercise have to go through.

    Attributes:
        drawn: what a case brings.
        lengths, dtypes: which of them must come up at each world size.
        sizes: the world sizes.
        because: why not all of them, where it is not all.
        most: cases at one world size.
    """

    drawn: Callable[[Case], Iterable[Drawn]]
    lengths: frozenset[str] = frozenset(LENGTHS)
    dtypes: frozenset[torch.dtype] = DTYPES
    sizes: tuple[int, ...] = STANDARD_SIZES
    because: str = ""
    most: int = MOST

    def missing(self, cases: Iterable[Case], n: int) -> list[str]:
        """What never comes up in these cases."""
        drawn = {one for case in cases for one in self.drawn(case)}
        lengths = {length for _, length in drawn}
        dtypes = {dtype for dtype, length in drawn if length}  # an empty tensor shows none
        return [
            *(
                f"length {name}"
                for name, of in LENGTHS.items()
                if name in self.lengths and of(n) not in lengths
            ),
            *sorted(str(dtype) for dtype in self.dtypes - dtypes),
        ]


def column(name: str) -> Callable[[Case], Iterator[Drawn]]:
    """The tensors of one argument, wherever they lie: for each rank, in lists, or one for all."""

    def tensors(value: object) -> Iterator[torch.Tensor]:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from tensors(part)

    return lambda c: ((t.dtype, t.numel()) for t in tensors(c.columns[name]))


def rows(name: str) -> Callable[[Case], Iterator[Drawn]]:
    """How many rows one argument has."""
    return lambda c: iter([(c.columns[name].dtype, len(c.columns[name]))])


def shared_out(along: Callable[[Case], int], *names: str) -> Callable[[Case], Iterator[Drawn]]:
    """What is cut into a piece for each rank: how long it is where it is cut."""

    def lengths(c: Case) -> Iterator[Drawn]:
        for name in names:
            value, dim = c.columns[name], along(c)
            parts = value if isinstance(value, PerRank) else [value]
            yield parts[0].dtype, sum(part.shape[dim] for part in parts)

    return lengths


def rows_that_travel(c: Case) -> Iterator[Drawn]:
    """The rows of each message; a rank alone has no other message than its own."""
    for r in c.ranks:
        for to, count in enumerate(c.counts[r]):
            if to != r or c.n == 1:
                yield c.rows[r].dtype, count


def nothing(c: Case) -> Iterator[Drawn]:
    """No tensor is among the arguments."""
    assert not any(
        isinstance(t, torch.Tensor)
        for value in c.columns.values()
        for t in (value if isinstance(value, PerRank) else [value])
    )
    return iter(())


def without(because: str, sizes: tuple[int, ...] = STANDARD_SIZES, most: int = MOST) -> Sweep:
    """An exercise that takes no tensor."""
    return Sweep(nothing, frozenset(), frozenset(), sizes, because, most)


NO_N = LENGTHS.keys() - {"n − 1", "n", "n + 1"}
X = Sweep(column("x"))
CHUNKS = Sweep(column("chunks"))
ATTENTION = Sweep(
    column("q"),
    frozenset(),
    frozenset({torch.float32, torch.float64}),
    because="heads × tokens × numbers; a softmax has no integers, and bfloat16 would hide mistakes",
)

SWEEPS = {
    "who_am_i": without("takes no arguments"),
    "neighbours": without("takes no arguments"),
    "ping_pong": Sweep(
        column("x"), sizes=STANDARD_SIZES[1:], because="one rank has nobody to play"
    ),
    "shift": X,
    "exchange": X,
    "broadcast": X,
    "tree_broadcast": X,
    "sync_parameters": Sweep(
        column("state"),
        frozenset(),
        DTYPES | {torch.bool},
        because="the lengths are those of a module's layers",
    ),
    "scatter": Sweep(column("out")),
    "gather": X,
    "reduce": X,
    "tree_reduce": X,
    "all_gather": X,
    "ring_all_gather": X,
    "reduce_scatter": CHUNKS,
    "ring_reduce_scatter": CHUNKS,
    "all_reduce_rooted": X,
    # one is transposed
    "all_reduce_sharded": Sweep(column("x"), most=11),
    "all_to_all": CHUNKS,
    "all_to_all_uneven": Sweep(rows_that_travel),
    "barrier": without("takes no arguments"),
    "scatter_reduce_1d": Sweep(
        lambda c: [(c.src.dtype, len(c.index))],
        NO_N,
        DTYPES
        | {torch.float16, torch.int32, torch.int16, torch.int8, torch.uint8}
        | {torch.bool, torch.complex64},
        (1,),
        "one process: nothing is shared out among n",
    ),
    "segment_mean": Sweep(
        rows("values"), NO_N, FLOATING, (1,), "one process; a mean with a gradient has no integers"
    ),
    "combine_experts": Sweep(
        rows("rows"), NO_N, FLOATING, (1,), "one process; weights with a gradient are no integers"
    ),
    "ring_schedule": without("takes numbers"),
    "ring_all_reduce": X,
    "unblock_ring": X,
    "unblock_order": X,
    "unblock_branch": Sweep(
        column("loss"), frozenset({"1"}), FLOATING, because="a loss is one number, and no integer"
    ),
    "stuck_ranks": without("takes a dictionary", (1,)),
    "stuck_ranks_any_all": without("takes a dictionary and a set", (1,)),
    "ring_all_reduce_seconds": without("takes numbers", (1,)),
    "tree_all_reduce_seconds": without("takes numbers", (1,)),
    "crossover_bytes": without("takes numbers", (1,)),
    "fit_alpha_beta": without("takes lists of numbers", (1,)),
    "algorithm_bandwidth": without("takes numbers", (1,)),
    "bus_bandwidth": without("takes numbers", (1,)),
    "time_collective": without("takes a function and numbers"),
    "parameter_server_step": Sweep(
        column("grads"), dtypes=FLOATING, because="gradients are no integers"
    ),
    "average_gradients": without("takes a module"),
    "assign_buckets": without("takes numbers", (1,)),
    "BucketedDDP": without("takes a module and a number"),
    "ShardedAdamW": without("takes parameters and numbers"),
    "FullySharded": without("takes a module and a dtype"),
    "quantized_all_reduce": Sweep(
        column("x"), dtypes=frozenset({torch.float32}), because="what is quantized is float32"
    ),
    "TopKFeedback": without("takes a number, and then gradients", (1,)),
    "DiLoCo": without("takes a module and numbers"),
    "gpipe_order": without("takes numbers", (1,)),
    "one_f_one_b_order": without("takes numbers", (1,)),
    "pipeline_bubble": without("takes numbers", (1,)),
    "run_pipeline": without("takes a module and micro-batches of its shape"),
    "transformer_block_params": without("takes numbers", (1,)),
    "model_params": without("takes numbers", (1,)),
    "training_state_bytes": without("takes numbers", (1,)),
    "step_flops": without("takes numbers", (1,)),
    "dp_overlap_ratio": without("takes numbers", (1,)),
    "zero3_overlap_ratio": without("takes numbers", (1,)),
    "tp_overlap_ratio": without("takes numbers", (1,)),
    "pp_overlap_ratio": without("takes numbers", (1,)),
    "build_mesh": without("takes numbers", (1, 2, 4, 6, 8)),
    "train": without("takes tokens and a configuration", (1, 2, 8)),
    "parallel_mlp": Sweep(
        shared_out(lambda c: 1, "w_in_shard"),
        dtypes=FLOATING,
        because="weights with a gradient are no integers",
    ),
    "vocab_parallel_cross_entropy": Sweep(
        shared_out(lambda c: 1, "logits_shard"),
        LENGTHS.keys() - {"0", "n − 1"},
        FLOATING,
        because="a target is one of the vocabulary, and logits are no integers",
    ),
    "gather_matmul": Sweep(lambda c: [(c.x_shard[0].dtype, len(c.x_shard[0]))]),
    "column_parallel": Sweep(
        shared_out(lambda c: 1, "weight_shard"),
        dtypes=FLOATING,
        because="weights with a gradient are no integers",
    ),
    "row_parallel": Sweep(
        shared_out(lambda c: 0, "weight_shard"),
        dtypes=FLOATING,
        because="weights with a gradient are no integers",
    ),
    "time_kernel": without("takes a function and numbers", (1,)),
    "hottest_ops": without("takes a profile", (1,)),
    "VECTOR_ADD_CPP": Sweep(
        column("a"),
        frozenset({"0", "1", "1000"}),
        frozenset({torch.float32}),
        (1,),
        "one process; other dtypes are to be refused",
    ),
    "pick_backend": without("takes a word", (1,)),
    "device_for": without("takes a number and a word", (1,)),
    "node_groups": without("takes a number", (2, 4, 6, 8)),
    "hierarchical_all_reduce": Sweep(
        column("x"), sizes=(2, 4, 6, 8), because="nodes have the same number of ranks each"
    ),
    "sequence_shard": Sweep(shared_out(lambda c: c.along, "x")),
    "sequence_unshard": Sweep(shared_out(lambda c: c.along, "x_shard")),
    "recursive_doubling_all_reduce": Sweep(
        column("x"), sizes=(1, 2, 3, 4, 7, 8), because="of seven ranks three fold, of five only one"
    ),
    "halving_doubling_all_reduce": X,
    "pipelined_broadcast": X,
    "scatter_all_gather_broadcast": X,
    "best_pieces": without("takes numbers", (1,)),
    "double_trees": without("takes a number", (1,)),
    "route": Sweep(
        rows("logits"),
        NO_N,
        frozenset({torch.float32, torch.float64}),
        (1,),
        "one process; two logits in bfloat16 may be equal, and then either expert is right",
    ),
    "expert_parallel": Sweep(
        lambda c: ((x.dtype, len(x)) for x in c.x),
        frozenset({"0", "7"}),
        frozenset({torch.float32, torch.float64}),
        because="it is the rows for each expert that vary; each case makes its networks",
    ),
    "first_divergence": without("takes lists of calls", (1,)),
    "ring_attention": ATTENTION,
    "ulysses_attention": ATTENTION,
    "zigzag_split": without("takes numbers", (1,)),
    "sum_of_survivors": Sweep(
        column("x"),
        frozenset({"0", "1"}),
        frozenset({torch.float32, torch.int64}),
        (3, 4, 5, 8),
        "two have to survive, and every case waits for the dead",
    ),
    "train_uneven": without("takes a module, and batches of its shape"),
    "pair_group": without("takes pairs of numbers"),
    "gather_ragged": Sweep(
        lambda c: ((x.dtype, len(x)) for x in c.x),
        LENGTHS.keys() - {"1000", "n + 1"},
        because="it is the numbers of rows that differ between ranks, and they are small",
    ),
    "full_state": Sweep(
        lambda c: ((t.dtype, len(t)) for shards in c.shards for t in shards.values()),
        frozenset({"0", "1"}),
        because="a shard has few rows; it is the names and shapes that vary",
    ),
    # a case is one call with one number, or two
    "mean_metrics": without("takes names and numbers", most=12),
    "chain_exchange": Sweep(column("forward")),
    "should_stop": without("takes two numbers", most=24),
    "tutorial_all_reduce": Sweep(column("send")),
}


def test_every_exercise_is_in_the_table():
    assert set(SWEEPS) == set(catalogue())


@pytest.mark.parametrize("name", SWEEPS)
def test_what_is_left_out_has_a_reason(name):
    sweep = SWEEPS[name]
    whole = sweep.lengths == set(LENGTHS) and sweep.dtypes >= DTYPES
    assert bool(sweep.because) != (whole and sweep.sizes == STANDARD_SIZES)


@pytest.mark.parametrize("name", SWEEPS)
def test_every_length_and_dtype_is_drawn_at_every_world_size(name):
    sweep, exercise = SWEEPS[name], catalogue()[name]
    assert tuple(sorted(exercise.world_sizes)) == sweep.sizes
    for n in sweep.sizes:
        cases = exercise.cases(1, n)
        assert not sweep.missing(cases, n), f"never drawn by {name} on {n} ranks"
        # each case of several ranks costs the student time; one in which the judge measures what
        # ranks hold cannot stand for any other
        usual = [case for case in cases if not case.pauses]
        assert sweep.sizes == (1,) or len(usual) <= sweep.most, f"{len(usual)} cases on {n} ranks"


@pytest.mark.parametrize("length", LENGTHS)
def test_a_length_that_is_not_drawn_is_noticed(length):
    n = 3
    cases = catalogue()["all_gather"].cases(1, n)
    others = [c for c in cases if c.x[0].numel() != LENGTHS[length](n)]
    assert f"length {length}" not in X.missing(cases, n)
    assert f"length {length}" in X.missing(others, n)


@pytest.mark.parametrize("dtype", sorted(DTYPES, key=str), ids=str)
def test_a_dtype_that_is_not_drawn_is_noticed(dtype):
    cases = catalogue()["all_gather"].cases(1, 4)
    others = [c for c in cases if c.x[0].dtype != dtype or not c.x[0].numel()]
    assert X.missing(cases, 4) == []
    assert str(dtype) in X.missing(others, 4)

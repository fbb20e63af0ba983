"""The arithmetic of scale: size of a model, cost of training it, and what can be overlapped.

``params``, ``hidden``, ``vocab`` and the like count elements and are whole numbers;
a name that says bytes means bytes.  A model is a stack of transformer blocks between
an embedding and a head.  Only its matrices are counted: biases and norms are of the
order of ``hidden``, where a matrix is of the order of ``hidden``².

A ratio is the time of a communication over the time of the computation that it could be
hidden behind; up to 1 it can be.  Ratios assume that device and link both reach their
peak, that there is one link, that messages have no latency, and that both can go on at
the same time.  Bytes on the link are those of the ring
(:func:`grader.course.costs.ring_all_reduce_seconds` without its latencies).

Everywhere ``peak_flops`` is that of one device in floating-point operations per second,
and ``peak_bandwidth`` that of its link in bytes per second and in one direction.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "TrainingState",
    "dp_overlap_ratio",
    "kept_activations",
    "model_params",
    "pp_overlap_ratio",
    "state_bytes",
    "step_flops",
    "tp_overlap_ratio",
    "training_state_bytes",
    "transformer_block_params",
    "zero3_overlap_ratio",
]


# Sizes and operations. -------------------------------------------------------------------


def transformer_block_params(hidden: int, glu: bool) -> int:
    """Return the parameters of a block: queries, keys, values 3h², output h², an MLP of width 4h.

    The MLP has a matrix up and one down, 8h².  A gated one (GLU) has two up: 12h².

    (Vaswani and others 2017, https://arxiv.org/abs/1706.03762; the gate is from Shazeer 2020,
    https://arxiv.org/abs/2002.05202, where the MLP is made narrower for it.)
    """
    return (16 if glu else 12) * hidden * hidden


def model_params(
    hidden: int, layers: int, vocab: int, glu: bool, tied_head: bool, max_positions: int = 0
) -> int:
    """Return the parameters of a model: blocks, embedding, head, and learned positions.

    Args:
        hidden: width of the model.
        layers: number of blocks.
        vocab: tokens that the embedding knows.
        glu: whether the MLPs are gated.
        tied_head: whether the head uses the embedding's matrix, and has none of its own.
        max_positions: number of learned positions; 0 where positions are computed.
    """
    rows = vocab * (1 if tied_head else 2) + max_positions
    return layers * transformer_block_params(hidden, glu) + rows * hidden


class TrainingState(NamedTuple):
    """Bytes that training keeps of parameters, whatever the batch.

    Attributes:
        weights: in bfloat16, used by forward and backward.
        gradients: in bfloat16.
        optimizer: Adam's state in float32: a master copy, momentum and variance.
    """

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All three."""
        return self.weights + self.gradients + self.optimizer


#: Bytes of one parameter.
_STATE = TrainingState(2, 2, 4 + 4 + 4)


def training_state_bytes(params: int) -> int:
    """Return the bytes of weights, gradients and Adam's state in mixed precision: 16 per parameter.

    (Rajbhandari and others 2020, section 3.1, https://arxiv.org/abs/1910.02054.)
    """
    return int(_STATE.total) * params


def state_bytes(params: float, dp: int = 1, zero: int = 0) -> TrainingState:
    """Return the bytes that each of ``dp`` replicas keeps of ``params`` parameters.

    Stage 1 of ZeRO shards the optimizer's state, 2 the gradients as well, 3 also the
    weights; 0 shards nothing.

    (Rajbhandari and others 2020, figure 1, https://arxiv.org/abs/1910.02054.)
    """
    w, g, o = (params * part for part in _STATE)
    return TrainingState(
        w / dp if zero >= 3 else w,
        g / dp if zero >= 2 else g,
        o / dp if zero >= 1 else o,
    )


def kept_activations(hidden: int, glu: bool) -> int:
    """Return how many elements a block keeps of each token for its backward pass.

    In multiples of ``hidden`` these are the inputs of two norms and of the four matrices (1
    each but 4 for the last), queries, keys and values (3), and the output of the MLP's first
    matrix (4).  A gate adds 4 for its own output, and 4 since the activated half is kept
    beside the product.  Attention keeps nothing of the size of its scores, as in
    FlashAttention, and there is no dropout.

    (Korthikanti and others 2022, https://arxiv.org/abs/2205.05198, count 34 bytes
    where this is 16 elements of two bytes: two masks of dropout have a byte each.)
    """
    return (24 if glu else 16) * hidden


def step_flops(tokens: int, params: int) -> int:
    """Return the operations of one step: 2 for each token and parameter forward, 4 backward.

    Forward there is a multiplication and an addition; backward as many for the gradient
    of the input, and again for that of the weight.  Attention's own products, which no
    parameter takes part in, are left out.

    (Kaplan and others 2020, section 2.1, https://arxiv.org/abs/2001.08361.)
    """
    return (2 + 4) * tokens * params


def bubble_share(pp: int, micro_batches: int) -> float:
    """Return the share of a step in which a stage of a pipeline stands still.

    A stage works for as many turns as there are micro-batches, and waits for pp − 1 more until
    the first has come and the last has gone: (pp − 1) / (micro_batches + pp − 1).

    (Narayanan and others 2021, section 2.2, https://arxiv.org/abs/2104.04473, give the bubble
    as a share of the work instead: (pp − 1) / micro_batches.)
    """
    return (pp - 1) / (micro_batches + pp - 1)


# What can be overlapped. --------------------------------------------------------------


def dp_overlap_ratio(
    tokens: int, dp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """Return the ratio for the all-reduce of gradients beside the backward pass that makes them.

    It is e·params·2(DP−1)/(DP·B) over 4·tokens·params/F: the parameters cancel.

    Args:
        tokens: of one replica, in the backward pass that the all-reduce runs beside.
        dp: replicas.
        peak_flops: F.
        peak_bandwidth: B.
        bytes_per_element: e, of a gradient.
    """
    sent = bytes_per_element * 2 * (dp - 1) / dp
    return sent / (4 * tokens) * (peak_flops / peak_bandwidth)


def zero3_overlap_ratio(
    seq: int,
    micro_batch: int,
    dp: int,
    peak_flops: float,
    peak_bandwidth: float,
    bytes_per_element: int,
) -> float:
    """Return the ratio for the all-gather of a block's weights beside the block before.

    It is e·params·(DP−1)/(DP·B) over 2·seq·micro_batch·params/F.  Backward it is an all-gather
    and a reduce-scatter, beside twice the work: the same.

    Args:
        seq: tokens of a sequence.
        micro_batch: sequences that a replica takes at once.
        dp: replicas among which the weights are sharded.
        peak_flops: F.
        peak_bandwidth: B.
        bytes_per_element: e, of a weight.
    """
    sent = bytes_per_element * (dp - 1) / dp
    return sent / (2 * seq * micro_batch) * (peak_flops / peak_bandwidth)


def tp_overlap_ratio(
    hidden: int, tp: int, peak_flops: float, peak_bandwidth: float, bytes_per_element: int
) -> float:
    """Return the ratio for an all-gather or reduce-scatter of activations beside an h × h matrix.

    A device has 1/TP of the matrix.  It is e·tokens·h·(TP−1)/(TP·B) over
    2·tokens·h²/(TP·F): tokens and one TP cancel.

    Args:
        hidden: h.
        tp: devices that share every matrix.
        peak_flops: F.
        peak_bandwidth: B.
        bytes_per_element: e, of an activation.
    """
    return bytes_per_element * (tp - 1) / (2 * hidden) * (peak_flops / peak_bandwidth)


def pp_overlap_ratio(
    hidden: int,
    layers_in_next_stage: int,
    peak_flops: float,
    peak_bandwidth: float,
    bytes_per_element: int,
    glu: bool = True,
) -> float:
    """Return the ratio for activations sent to the next stage beside its forward pass.

    It is e·tokens·h/B over 2·tokens·16h²·layers/F: tokens and one h cancel.  (12h² without GLU.)

    Args:
        hidden: h.
        layers_in_next_stage: blocks of the stage that receives.
        peak_flops: F.
        peak_bandwidth: B.
        bytes_per_element: e, of an activation.
        glu: whether the blocks are gated.
    """
    flops_a_token = 2 * transformer_block_params(hidden, glu) * layers_in_next_stage
    return bytes_per_element * hidden / flops_a_token * (peak_flops / peak_bandwidth)

"""A training run on paper: a model, how it is spread over devices, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from grader.core.errors import RequestError
from grader.course import sizes

__all__ = ["Memory", "Overlap", "Plan"]

#: Bytes of weights, gradients and activations: bfloat16.
_BYTES = 2


class Memory(NamedTuple):
    """Bytes on one device of the first stage.

    Attributes:
        weights, gradients, optimizer: as in :class:`grader.course.sizes.State`.
        activations: what is kept for the backward passes to come.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def total(self) -> float:
        """All four."""
        return sum(self)


class Overlap(NamedTuple):
    """A communication, and what it could be hidden behind.

    Attributes:
        name: of the parallelism, with its degree.
        what: is sent, beside what.
        ratio: the seconds of one over the seconds of the other.
    """

    name: str
    what: str
    ratio: float

    @property
    def hidden(self) -> bool:
        """Whether the computation takes as long as the communication."""
        return self.ratio <= 1


@dataclass(frozen=True)
class Plan:
    """A model, a batch, the degrees of parallelism, and the machine.

    Attributes:
        hidden, layers, vocab, glu, tied_head, max_positions: as in
            :func:`grader.course.sizes.model_params`.
        seq: tokens of a sequence.
        micro_batch: sequences that go through at once.
        dp: replicas.
        zero: stage of ZeRO among them, 0 to 3.
        tp: devices that share every matrix, and every activation (sequence parallel).
        pp: stages.
        recompute: whether a block keeps its input only, and computes the rest again.
        peak_flops: of a device, operations a second.
        bandwidth: of its link to other machines, bytes a second in one direction.
        bandwidth_inside: of its link inside the machine, where TP's traffic goes.

    Raises:
        RequestError: there is no such run.
    """

    hidden: int = 4096
    layers: int = 32
    vocab: int = 32_000
    glu: bool = True
    tied_head: bool = False
    max_positions: int = 0
    seq: int = 4096
    micro_batch: int = 1
    dp: int = 8
    zero: int = 1
    tp: int = 1
    pp: int = 1
    recompute: bool = False
    peak_flops: float = 989e12
    bandwidth: float = 50e9
    bandwidth_inside: float = 450e9

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "seq", "micro_batch", "dp", "tp", "pp"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise RequestError(f"{name} is a whole number from 1 on, not {value!r}")
        for name in ("vocab", "max_positions"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise RequestError(f"{name} is a whole number from 0 on, not {value!r}")
        for name in ("peak_flops", "bandwidth", "bandwidth_inside"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < float("inf")):
                raise RequestError(f"{name} is a number above 0, not {value!r}")
        if self.zero not in (0, 1, 2, 3):
            raise RequestError(f"zero is a stage, 0 to 3, not {self.zero!r}")
        if self.pp > self.layers:
            raise RequestError(
                f"{self.pp} stages (pp) need as many layers, and there are {self.layers}:"
                " fewer stages, or more layers"
            )
        if self.hidden % self.tp:
            raise RequestError(
                f"{self.tp} devices (tp) cannot share hidden = {self.hidden} evenly:"
                " take a tp that divides it"
            )

    @property
    def devices(self) -> int:
        """All of them."""
        return self.dp * self.tp * self.pp

    @property
    def params(self) -> int:
        """Parameters of the whole model."""
        return sizes.model_params(
            self.hidden, self.layers, self.vocab, self.glu, self.tied_head, self.max_positions
        )

    @property
    def params_here(self) -> float:
        """Parameters that a device of the first stage computes with.

        The first stage has the embedding, and where the layers do not share out evenly one
        more than the last; the head is on the last.
        """
        no_head = self.tied_head or self.pp > 1
        stage = sizes.model_params(
            self.hidden, self._first_layers, self.vocab, self.glu, no_head, self.max_positions
        )
        return stage / self.tp

    @property
    def _first_layers(self) -> int:
        return -(-self.layers // self.pp)

    @property
    def memory(self) -> Memory:
        """What is where on a device of the first stage, which keeps the most activations.

        Where one forward pass is followed by one backward pass, the first stage has as
        many micro-batches on their way as there are stages.

        (Korthikanti and others 2022, section 4.2.3, https://arxiv.org/abs/2205.05198.)
        """
        state = sizes.state_bytes(self.params_here, self.dp, self.zero)
        everything = sizes.kept_activations(self.hidden, self.glu)
        each, at_work = (self.hidden, everything) if self.recompute else (everything, 0)
        kept = each * self._first_layers * self.pp + at_work
        tokens = self.seq * self.micro_batch
        return Memory(*state, _BYTES * tokens * kept / self.tp)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """What is sent, for every degree above 1."""
        found = []
        machine = self.peak_flops, self.bandwidth, _BYTES
        if self.dp > 1 and self.zero == 3:
            ratio = sizes.zero3_overlap_ratio(self.seq, self.micro_batch, self.dp, *machine)
            what = "all-gather of a block's weights, beside the block before"
            found.append(Overlap(f"ZeRO-3 over {self.dp}", what, ratio))
        elif self.dp > 1:
            ratio = sizes.dp_overlap_ratio(self.seq * self.micro_batch, self.dp, *machine)
            what = "all-reduce of gradients, beside the backward pass"
            found.append(Overlap(f"DP over {self.dp}", what, ratio))
        if self.tp > 1:
            ratio = sizes.tp_overlap_ratio(
                self.hidden, self.tp, self.peak_flops, self.bandwidth_inside, _BYTES
            )
            what = "all-gather of activations, beside a matrix of hidden × hidden"
            found.append(Overlap(f"TP over {self.tp}", what, ratio))
        if self.pp > 1:
            ratio = sizes.pp_overlap_ratio(
                self.hidden, self.layers // self.pp, *machine, glu=self.glu
            )
            what = "activations to the next stage, beside its blocks"
            found.append(Overlap(f"PP over {self.pp}", what, ratio))
        return tuple(found)

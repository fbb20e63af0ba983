"""Sums are differences of running sums. An infinity that went in stays in all that come after it,
and inf − inf is nan: one place with an infinity spoils the others. Add up each place by itself."""

# exercise: scatter_reduce_1d
# diagnosis: wrong_value
import torch
import torch.nn.functional as F


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    if len(index) == 0:
        return out
    order = index.argsort(stable=True)
    src = src[: len(index)][order]
    places, sizes = index[order].unique_consecutive(return_counts=True)
    if reduce in ("sum", "mean"):
        running = F.pad(src.cumsum(0), (1, 0))
        ends = sizes.cumsum(0)
        sums = running[ends] - running[ends - sizes]
        if include_self:
            sums = sums + input[places]
            sizes = sizes + 1
        if reduce == "mean":
            sums = (
                sums / sizes if src.is_floating_point() else sums.div(sizes, rounding_mode="floor")
            )
        out[places] = sums.to(out.dtype)
        return out
    pieces = []
    for place, group in zip(places, src.split(sizes.tolist())):
        if include_self:
            group = torch.cat([group, input[place].reshape(1)])
        pieces.append(torch.prod(group) if reduce == "prod" else getattr(torch, reduce)(group, 0))
    out[places] = torch.stack(pieces).to(out.dtype)
    return out

# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: have been float32 on their way
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out, heard = input.clone(), {}
    for place, number in zip(index.tolist(), src.tolist()):
        begin = [input[place].item()] if include_self else []
        heard.setdefault(place, begin).append(number)
    for place, numbers in heard.items():
        pile = torch.tensor(numbers)
        if reduce == "mean":
            rounding = None if pile.is_floating_point() or pile.is_complex() else "floor"
            out[place] = torch.div(pile.sum(), len(numbers), rounding_mode=rounding)
        else:
            out[place] = getattr(pile, reduce)()
    return out

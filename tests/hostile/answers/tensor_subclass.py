# promise: a tensor counts by its values, whatever it claims
# exercise: who_am_i
# verdict: failed
# diagnosis: wrong_value
import torch


class Lying(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in ("eq", "equal", "allclose", "__eq__"):
            return torch.tensor([True, True])
        return super().__torch_function__(function, types, args, kwargs or {})


def who_am_i():
    return torch.tensor([-1, -1]).as_subclass(Lying)

"""What the ranks of a tp group have after the product with the rows is not added up: each of them
has a part, and leave makes the sum of them in the forward pass."""
# exercise: train
# diagnosis: wrong_value


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        return part.view_as(part)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None

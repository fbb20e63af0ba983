"""What comes back at the entry of a shard is the part of this rank's own columns and heads. Add
these parts up over tp in the backward pass of enter: otherwise the layers below, down to the
embedding, learn from only part of the gradient."""
# exercise: train
# diagnosis: wrong_value


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None

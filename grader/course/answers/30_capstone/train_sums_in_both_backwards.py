"""Gradients that come back through leave are added up over tp, and so are tp times too large. All
ranks have the same loss: backward of leave passes the gradient on as it is."""
# exercise: train
# diagnosis: wrong_value


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        ctx.group = group
        return added_up(part, group)

    @staticmethod
    def backward(ctx, gradient):
        return added_up(gradient, ctx.group), None

# exercise: train
# diagnosis: wrong_value
# hint: Add these parts up over tp in the backward pass of enter
# on: 30_capstone
class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad, None

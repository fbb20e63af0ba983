# exercise: train
# diagnosis: wrong_value
# hint: backward of leave passes the gradient on
# on: 30_capstone
class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        ctx.group = group
        return added_up(part, group)

    @staticmethod
    def backward(ctx, grad):
        return added_up(grad, ctx.group), None

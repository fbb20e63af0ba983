# exercise: train
# diagnosis: wrong_value
# hint: look at the forward pass along tp
# on: 30_capstone
class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, group):
        return part.view_as(part)

    @staticmethod
    def backward(ctx, grad):
        return grad, None

"""From the second outer step on, no change is seen: the common weights and the parameters share
memory, and inner steps change both. Copy values: p.copy_(common)."""
# exercise: DiLoCo
# diagnosis: wrong_value
# or: OPTIMIZER = "torch's"

OPTIMIZER = "its own"


class DiLoCo(DiLoCo):
    def begin(self):
        super().begin()
        if OPTIMIZER == "torch's":  # which refuses Nesterov's momentum if that is 0
            weight = torch.zeros(1, requires_grad=True)
            torch.optim.SGD([weight], lr=1.0, momentum=self.momentum, nesterov=True)

    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)
        p.data = common

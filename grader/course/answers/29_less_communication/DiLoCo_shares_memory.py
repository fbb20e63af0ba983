"""From the second outer step on, no change is seen: the common weights and the parameters share
memory, and inner steps change both. Copy values: p.copy_(common)."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)
        p.data = common

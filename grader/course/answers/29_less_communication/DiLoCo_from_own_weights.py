"""The outer step is made from each rank's own weights, so ranks drift apart. Make it from the last
common weights, and copy the result into the parameters."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        p -= self.outer_lr * (gradient + self.momentum * velocity)
        common.copy_(p)

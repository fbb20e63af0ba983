"""The change enters the velocity with the share 1 − momentum, as in a running mean. In SGD it
enters whole: velocity = momentum · velocity + change."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_((1 - self.momentum) * gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)
        p.copy_(common)

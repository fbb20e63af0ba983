"""The velocity is forgotten after each outer step: keep it from one to the next."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity = gradient
        common -= self.outer_lr * (gradient + self.momentum * velocity)
        p.copy_(common)

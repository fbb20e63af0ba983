"""This is plain momentum. Nesterov's steps by gradient + momentum · velocity, with the new
velocity."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * velocity
        p.copy_(common)

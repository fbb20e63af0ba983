"""Every outer step begins at the weights of the start. It begins at those of the last outer step,
which are the last that all ranks had in common."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        p.copy_(common - self.outer_lr * (gradient + self.momentum * velocity))

"""An outer step leaves the parameters as the inner steps have made them. Write the new common
weights into them: p.copy_(common) under torch.no_grad()."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)

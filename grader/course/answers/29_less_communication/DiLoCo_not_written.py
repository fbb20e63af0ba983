"""An outer step leaves the parameters as the inner steps have made them. Are the new common weights
written into them, as with p.copy_(common)? And is what you keep as the common weights a clone()?
p.data and p.detach() share the parameter's memory, so that no change is ever seen.
"""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        velocity.mul_(self.momentum).add_(gradient)
        common -= self.outer_lr * (gradient + self.momentum * velocity)

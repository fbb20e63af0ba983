"""The weights are only averaged. The mean change is a gradient: outer_lr and momentum say what
becomes of it."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def outer_step(self, p, common, velocity):
        gradient = self.averaged(common - p)
        common -= gradient
        p.copy_(common)

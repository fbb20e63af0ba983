"""torch does not let a parameter that requires a gradient be changed in place where autograd
watches: decorate with @torch.no_grad()."""
# exercise: DiLoCo
# diagnosis: exception


class DiLoCo(DiLoCo):
    def after_inner_step(self):
        if not self.due():
            return False
        for one in zip(self.parameters, self.common, self.velocity):
            self.outer_step(*one)
        return True

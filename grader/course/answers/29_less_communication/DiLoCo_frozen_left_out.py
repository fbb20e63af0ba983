"""Frozen parameters are still each rank's own. No optimizer changes them, but in the beginning
they, too, have to become rank 0's: broadcast all of module.parameters()."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def parameters_of(self, module):
        return [p for p in module.parameters() if p.requires_grad]

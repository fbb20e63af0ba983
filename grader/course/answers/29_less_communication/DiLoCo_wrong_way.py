"""The outer step goes the wrong way: SGD subtracts its gradient, so the gradient is common −
weights, and not weights − common."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def averaged(self, change):
        return -super().averaged(change)

"""It synchronises after the first inner_steps calls, and then never again: set the counter back to
0, or look at the remainder, count % inner_steps."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def due(self):
        self.count += 1
        return self.count == self.inner_steps

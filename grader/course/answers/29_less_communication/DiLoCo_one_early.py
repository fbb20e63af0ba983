"""It synchronises one inner step too early, the first time: begin to count at 0, and count the step
just made before you look."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def due(self):
        self.count += 1
        return (self.count + 1) % self.inner_steps == 0

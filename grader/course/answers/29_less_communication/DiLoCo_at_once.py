"""It already synchronises after the first inner step: count the step that has just been made
before you look at the counter."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def due(self):
        self.count += 1
        return (self.count - 1) % self.inner_steps == 0

"""It synchronises one inner step too late. Is the step just made counted before you look, and do you
compare with inner_steps itself?"""
# exercise: DiLoCo
# diagnosis: wrong_value
# or: AGAIN = "after one more"

AGAIN = "after as many"


class DiLoCo(DiLoCo):
    def due(self):
        self.count += 1
        if AGAIN == "after as many":
            return self.count > 1 and self.count % self.inner_steps == 1 % self.inner_steps
        if self.count <= self.inner_steps:
            return False
        self.count = 0
        return True

"""Each rank makes the outer step with its own change. Average the changes of all ranks first."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def averaged(self, change):
        return change

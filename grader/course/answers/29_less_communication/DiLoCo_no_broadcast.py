"""Ranks start from their own weights. Broadcast rank 0's when the object is made."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def begin(self):
        pass

"""The changes of all ranks are added up, and not divided by n."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def averaged(self, change):
        dist.all_reduce(change)
        return change

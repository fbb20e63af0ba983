"""A weight that two layers share is in your list twice, so it makes two outer steps each time.
module.parameters() has each parameter once."""
# exercise: DiLoCo
# diagnosis: wrong_value


class DiLoCo(DiLoCo):
    def parameters_of(self, module):
        return [p for part in module.modules() for p in part.parameters(recurse=False)]

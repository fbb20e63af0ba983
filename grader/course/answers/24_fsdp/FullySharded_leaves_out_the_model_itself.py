"""It works unless the wrapped model is a layer itself, such as one nn.Linear. module.modules()
begins with the module; its children and submodules leave it out."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def layers(self):
        return list(self.module.modules())[1:]

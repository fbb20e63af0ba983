"""An integer input was cast. Only floating inputs are: x.is_floating_point() tells."""
# exercise: FullySharded
# diagnosis: exception


class FullySharded(ShardedModule):
    def cast(self, value):
        tensor = isinstance(value, torch.Tensor)
        return value.to(self.compute_dtype) if self.compute_dtype and tensor else value

"""full_state_dict leaves out the buffers. self.module.state_dict() has them, beside the
parameters."""
# exercise: FullySharded
# diagnosis: wrong_value


class FullySharded(ShardedModule):
    def full_state_dict(self):
        return {
            name: self.weight_in_state(p) if p in self.shapes else p.detach().clone()
            for name, p in self.module.named_parameters()
        }

"""Where parameters are frozen, ranks have different ones: only those that require a gradient are
broadcast. The output depends on all of them: broadcast every one of module.parameters().
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient


class BucketedDDP(Bucketed):
    def share(self):
        for tensor in (*self.trained(), *self.module.buffers()):
            dist.broadcast(tensor.data, 0)

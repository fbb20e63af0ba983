"""forward has to take whatever the module takes, by place and by name, and to pass it on:
def forward(self, *args, **kwargs), and self.module(*args, **kwargs)."""
# exercise: BucketedDDP
# diagnosis: exception


class BucketedDDP(Bucketed):
    def forward(self, *args):
        return super().forward(*args)

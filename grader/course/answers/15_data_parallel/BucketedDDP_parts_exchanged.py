"""What comes back is put into the wrong places: a parameter gets numbers that belong to another one
of its bucket. Go through the bucket in the order in which it was flattened, and move on by p.numel()
after each.
"""
# exercise: BucketedDDP
# diagnosis: wrong_gradient
# or: PARTS = "in the other order"
# or: PARTS = "views of the beginning"

PARTS = "copies of the beginning"


class BucketedDDP(Bucketed):
    def put_back(self, bucket, flat):
        if PARTS == "in the other order":
            super().put_back(bucket[::-1], flat)
            return
        for p in bucket:
            first = flat[: p.numel()].view_as(p)
            p.grad = first if PARTS == "views of the beginning" else first.clone()

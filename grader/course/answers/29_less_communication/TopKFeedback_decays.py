"""What is left gets smaller from step to step. Nothing is lost in error feedback: add all of it to
the next gradient."""
# exercise: TopKFeedback
# diagnosis: wrong_value
# or: SHARE = 0.5
# or: SHARE = 0.99

SHARE = 0.9


class TopKFeedback(TopKFeedback):
    def rest(self, grad, whole, indices):
        whole[indices] = 0
        return SHARE * whole

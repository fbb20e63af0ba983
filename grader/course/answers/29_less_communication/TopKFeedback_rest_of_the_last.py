"""Only the rest of the last gradient is kept. What was left of the steps before it has to be kept
as well: the rest of grad + left."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def rest(self, grad, whole, indices):
        rest = grad.clone()
        rest[indices] = 0
        return rest

"""These are the largest of the gradient alone: what was left of earlier steps is forgotten. Add it
to each gradient first."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def rest(self, grad, whole, indices):
        return 0

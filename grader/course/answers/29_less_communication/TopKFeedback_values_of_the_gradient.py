"""The indices are right, but the values are those of the gradient alone. Send grad + left at these
places."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def sent(self, grad, whole):
        return grad

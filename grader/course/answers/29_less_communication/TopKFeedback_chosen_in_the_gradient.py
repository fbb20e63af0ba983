"""The largest are looked for in the gradient alone. Look in grad + left: what was left behind
often enough becomes large."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def chosen(self, grad, whole):
        return grad.abs().topk(self.k).indices

"""These are the k smallest in magnitude."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def chosen(self, grad, whole):
        return whole.abs().topk(self.k, largest=False).indices

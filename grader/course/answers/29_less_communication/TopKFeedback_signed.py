"""Largest in magnitude: −5 comes before 3. Compare absolute values."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def chosen(self, grad, whole):
        return whole.topk(self.k).indices

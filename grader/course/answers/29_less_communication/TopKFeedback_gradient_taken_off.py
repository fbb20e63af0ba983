"""What was sent is grad + left, but only grad is taken off again, so what was left at these places
is sent twice. Set these elements to zero."""
# exercise: TopKFeedback
# diagnosis: wrong_value
# or: SORTED = True

SORTED = False  # which of two that are equally large comes first, differs


class TopKFeedback(TopKFeedback):
    def chosen(self, grad, whole):
        if SORTED:
            return whole.abs().sort(descending=True).indices[: self.k]
        return whole.abs().topk(self.k).indices

    def rest(self, grad, whole, indices):
        whole[indices] -= grad[indices]
        return whole

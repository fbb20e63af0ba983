"""What was sent is still kept, and so it is sent again and again: set these elements to zero in
what is left."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def rest(self, grad, whole, indices):
        return whole

"""The values have lost their signs: choose by absolute value, and send the numbers themselves."""
# exercise: TopKFeedback
# diagnosis: wrong_value


class TopKFeedback(TopKFeedback):
    def sent(self, grad, whole):
        return whole.abs()

"""Every rank cuts its part of the columns into as many heads as the whole model has. It has heads
// tp of them."""
# exercise: train
# diagnosis: wrong_value


def heads_of(config, tp):
    return config["heads"]

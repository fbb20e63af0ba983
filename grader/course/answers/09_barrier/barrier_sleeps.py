# exercise: barrier
# diagnosis: not_synchronized
# hint: cannot know by sleeping
# says: rank 0 can leave before rank 1 has entered
import time


def barrier():
    time.sleep(0.01)

"""There are as many passes of each kind as micro-batches; the number of stages does not matter."""
# exercise: gpipe_order
# diagnosis: wrong_shape
# or: DOWN = True
# or: NUMBER = "micro-batches left"

DOWN = False
NUMBER = "stages"


def gpipe_order(stage, stages, micro_batches):
    numbers = range(stages if NUMBER == "stages" else micro_batches - stage)
    back = reversed(numbers) if DOWN else numbers
    return [("forward", i) for i in numbers] + [("backward", i) for i in back]

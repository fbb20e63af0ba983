# promise: no rank can make its failure look like the grader's
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control


def neighbours():
    from headcount.core.wire import Raised

    control().sendall(framed(Raised("join", "OSError", "the network is down", [])))
    return 0, 0

# promise: a rank that never stops talking is ended when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
# parts: control


def neighbours():
    from grader.core.events import Polled

    sock, events = control(), framed(*[Polled(0, 0)] * 1000)
    while True:
        sock.sendall(events)

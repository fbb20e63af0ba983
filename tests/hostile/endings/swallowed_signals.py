# promise: no signal handler keeps a rank alive
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import signal


def neighbours():
    for number in range(1, 65):
        try:
            signal.signal(number, lambda *_: None)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        pass

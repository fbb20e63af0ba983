# promise: a rank that hangs up has not answered
# exercise: neighbours
# verdict: failed
# diagnosis: exception
# parts: control
import socket


def neighbours():
    import time

    control().shutdown(socket.SHUT_RDWR)
    time.sleep(1000)

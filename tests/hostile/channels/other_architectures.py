# promise: a rank makes no system call but those that it needs
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
X32 = 0x40000000

#: Calls of x32, another set of numbers on x86-64, where 39 is getpid and 41 is socket.
ATTEMPTS = {
    "harmless": lambda: call("syscall", X32 | 39),
    "socket": lambda: call("syscall", X32 | 41, 2, 1, 0),
}

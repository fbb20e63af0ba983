# promise: a message is short, whatever an exception says
# exercise: neighbours
# verdict: failed
# diagnosis: exception
def deeper(n):
    name = "f" * 100_000
    space = {"deeper": deeper}
    exec(compile(f"def {name}(n): return deeper(n)", "cell " + "9" * 100_000, "exec"), space)
    if n:
        return space[name](n - 1)
    raise ValueError("far down")


def neighbours():
    deeper(20)

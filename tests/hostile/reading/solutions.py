# promise: nothing can be read that is not the course's own runtime
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import os


def search():
    """Anything whose name says that it is worth a look."""
    words = ("02_broadcast", "ch02_", "exercise.py", "canary", "alice.json")
    found = []
    for folder, folders, names in os.walk("/"):
        if folder.count("/") == 1 and folder in ("/usr", "/sys"):
            folders[:] = [f for f in folders if f == "local"]
        if "site-packages/" in folder:
            folders.clear()
        found += [f"{folder}/{n}" for n in [*folders, *names] if any(w in n for w in words)]
    return found[:5] or os.stat("/nothing/found")


ATTEMPTS = {"search": search}

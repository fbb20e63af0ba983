# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import os
import tempfile
from pathlib import Path


def write_anywhere():
    written = []
    for folder, folders, names in os.walk("/"):
        for path in [f"{folder}/hostile", *(f"{folder}/{name}" for name in names[:2])]:
            if path.startswith("/dev/"):
                continue
            try:
                with open(path, "ab") as file:
                    file.write(b"x")
                written.append(path)
            except OSError:
                continue
        if len(folder.split("/")) > 3:  # further down there are too many to try in time
            folders.clear()
    if not written:
        raise PermissionError
    return written


ATTEMPTS = {
    "somewhere": write_anywhere,
    "temporary": lambda: tempfile.mkstemp(),
    "shared memory": lambda: Path("/dev/shm/hostile").write_text("x"),
    "link": lambda: os.symlink("a", "/tmp/hostile"),
    "folder": lambda: os.mkdir("/hostile"),
    "rename": lambda: os.rename("/usr", "/hostile"),
    "mode": lambda: os.chmod("/dev/null", 0o600),
    "owner": lambda: os.chown("/dev/null", 0, 0),
    "time": lambda: os.utime("/dev/null", (1, 1)),
    "attribute": lambda: os.setxattr("/usr", "user.hostile", b"x"),
    "special file": lambda: os.mkfifo("/tmp/hostile"),
    "device": lambda: os.mknod("/tmp/hostile"),
}

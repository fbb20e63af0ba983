# promise: nothing can be read that is not the course's own runtime
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: attempts
import glob
import os
import pwd
import sys
from pathlib import Path


def listed(*patterns):
    # this Python itself may be installed anywhere
    own = (sys.base_prefix, sys.prefix)
    found = [path for pattern in patterns for path in glob.glob(pattern)]
    found = [path for path in found if not any(one.startswith(path) for one in own)]
    return found or os.stat("/nothing/found")


ATTEMPTS = {
    "home": lambda: listed("/home/*/*", "/root/*", "/root/.*", "/nonexistent/*"),
    "temporary": lambda: listed("/tmp/*", "/var/*", "/run/*", "/mnt/*", "/srv/*", "/opt/*"),
    "passwords": lambda: Path("/etc/passwd").read_text(),
    "shadow": lambda: Path("/etc/shadow").read_text(),
    "users": lambda: pwd.getpwall()[0],
    "machine": lambda: Path("/etc/machine-id").read_text(),
    "name": lambda: os.uname().nodename != "sandbox" or os.stat("/nothing/found"),
    "processes": lambda: listed("/proc/[0-9]*", "/proc/self", "/proc/thread-self"),
    "devices": lambda: listed("/dev/sd*", "/dev/nvme*", "/dev/mem", "/dev/tty", "/dev/pts/*"),
    "sockets": lambda: listed("/var/run/docker.sock", "/run/systemd/*"),
    "root": lambda: os.chroot("/"),
    "mount": lambda: os.unshare(0x20000) if hasattr(os, "unshare") else os.chroot("/"),
}

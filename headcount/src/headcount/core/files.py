"""Reading of the files that a user names."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from headcount.core.errors import UnreadableFile

__all__ = ["LARGEST_FILE", "contents"]

#: Largest size of a file in bytes, by default.
LARGEST_FILE = 32 << 20


def contents(
    path: Path,
    wanted: str = ".py or .ipynb",
    largest: int = LARGEST_FILE,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> bytes:
    """Return all bytes of a file that the user named.

    Args:
        path: the path as it was given.
        wanted: suffixes of such files, named in the message if the path is a folder's.
        largest: bytes that it may have.
        read: what is called to read it.

    Raises:
        UnreadableFile: the file does not exist, is not a regular file, is too large, or cannot
            be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableFile(f"{path} is a folder; name a {wanted} file in it")
        if not stat.S_ISREG(mode):
            raise UnreadableFile(f"{path} is no regular file")
        if path.stat().st_size > largest:
            raise UnreadableFile(f"{path} is larger than {largest >> 20} MB")
        return read(path)
    except FileNotFoundError:
        raise UnreadableFile(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{path} cannot be read: {reason}") from None

"""The file of a submission as bytes.

It needs nothing: a request that names no file is refused before torch is imported.
"""

from __future__ import annotations

import stat
from pathlib import Path

from grader.core.errors import UnreadableFile

__all__ = ["LARGEST", "contents"]

#: No submission is larger: the largest solved notebook of the course has 1 MB.
LARGEST = 32 << 20


def contents(path: Path, wanted: str = ".py or .ipynb") -> bytes:
    """All bytes of a file that somebody named.

    Args:
        path: as they named it.
        wanted: how the names of such files end, for those who name a folder.

    Raises:
        UnreadableFile: it is not there, no file, too large, or not to be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableFile(f"{path} is a folder; name a {wanted} file in it")
        if not stat.S_ISREG(mode):
            raise UnreadableFile(f"{path} is no regular file")
        if path.stat().st_size > LARGEST:
            raise UnreadableFile(f"{path} is larger than {LARGEST >> 20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        raise UnreadableFile(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{path} cannot be read: {reason}") from None

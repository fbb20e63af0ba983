"""The memory of another process, and where a library keeps a variable in it.

The kernel copies the bytes: the process is not stopped, and notices nothing.
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from pathlib import Path
from types import TracebackType

__all__ = ["Memory", "UnknownLayout", "library_of", "offset_of"]


class UnknownLayout(ValueError):
    """What is to be read of a process does not lie where it is expected."""


class Memory:
    """The memory of a process, as a context.

    Args:
        pid: the process; OSError where the system does not let it be read.
    """

    def __init__(self, pid: int) -> None:
        self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def close(self) -> None:
        """End the reading."""
        os.close(self._file)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, address: int, length: int) -> bytes:
        """Return bytes; the kernel copies them, and the process notices nothing."""
        if not 0 < address < 1 << 56:
            raise UnknownLayout(f"{address:#x} is no address")
        data = os.pread(self._file, length, address)
        if len(data) != length:
            raise UnknownLayout(f"the memory at {address:#x} ends early")
        return data

    def text(self, block: bytes, at: int, start: int) -> str:
        """Return a ``std::string`` of a block that begins at an address; short ones are in it."""
        address, length = struct.unpack_from("<QQ", block, at)
        if length > 4096:
            raise UnknownLayout(f"no text has {length} bytes here")
        return self._bytes(address, length, block, start).decode(errors="replace")

    def numbers(self, block: bytes, at: int, start: int) -> list[int]:
        """Return the numbers of a vector that grows from within its block."""
        address, count = struct.unpack_from("<QI", block, at)
        if count > 4096:
            raise UnknownLayout(f"no list has {count} numbers here")
        return list(struct.unpack(f"<{count}q", self._bytes(address, 8 * count, block, start)))

    def _bytes(self, address: int, length: int, block: bytes, start: int) -> bytes:
        if start <= address <= start + len(block) - length:
            return block[address - start : address - start + length]
        return self.read(address, length) if length else b""


def library_of(pid: int, name: str) -> tuple[int, Path] | None:
    """Return where a library begins in a process, and its file; None if it is not loaded."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            parts = line.split(maxsplit=5)
            if len(parts) == 6 and parts[5].rstrip().endswith(f"/{name}") and not int(parts[2], 16):
                path = Path(f"/proc/{pid}/root{parts[5].rstrip()}")
                return int(parts[0].partition("-")[0], 16), path
    return None


@functools.cache
def offset_of(library: Path, variable: bytes) -> int:
    """Return where a variable is in a library of 64 bits, whose table of symbols has its name.

    Raises:
        UnknownLayout: the table has no such name.
    """
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (sections,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        table = [struct.unpack_from("<IIQQQQIIQQ", data, sections + n * size) for n in range(count)]
        for _, kind, _, _, start, length, link, *_ in table:
            if kind != 2:  # a table of symbols
                continue
            names, names_length = table[link][4], table[link][5]
            found = data.find(b"\0" + variable + b"\0", names, names + names_length)
            wanted = struct.pack("<I", found + 1 - names) if found >= 0 else b""
            at = data.find(wanted, start, start + length) if wanted else -1
            while at >= 0:
                if (at - start) % 24 == 0:
                    return int(struct.unpack_from("<Q", data, at + 8)[0])
                at = data.find(wanted, at + 1, start + length)
    raise UnknownLayout(f"{library.name} names no {variable.decode()}")

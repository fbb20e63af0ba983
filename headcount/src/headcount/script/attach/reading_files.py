"""The files by which the machines of a job bring together what was read on each of them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from headcount.core.errors import RequestError, UnreadableFile
from headcount.core.files import contents
from headcount.script.attach.readings import VERSION, JobReadings
from headcount.trace.flight_recorder import printable

__all__ = ["read_folder", "write_readings"]


def write_readings(readings: JobReadings, folder: Path) -> Path:
    """Write what was read of this machine's ranks into a folder, and return the file.

    Raises:
        RequestError: it cannot be written.
    """
    # containers may have one name, and no two machines of a job have the same ranks
    path = folder / f"attach_{socket.gethostname()}_{min(readings.last, default=0)}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".part{os.getpid()}")
        part.write_bytes(msgspec.json.encode(readings))
        part.replace(path)  # who reads the folder meanwhile finds no half of a file
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror}") from None
    return path


def read_folder(folder: Path) -> JobReadings:
    """Return what the machines of a job have left in a folder; a file that is none is listed.

    Raises:
        RequestError: there is no such folder, no file can be read, or they are of several jobs.
    """
    if not folder.is_dir():
        raise RequestError(f"{folder} is no folder, such as attach --write leaves its files in")
    found: JobReadings | None = None
    unread = []
    for path in sorted(folder.glob("*.json")):
        try:
            one = msgspec.json.decode(contents(path), type=JobReadings)
        except (msgspec.DecodeError, UnreadableFile, UnicodeError, RecursionError) as error:
            unread.append(printable(f"{path.name} is no file of attach --write: {error}"))
            continue
        if one.version != VERSION:
            unread.append(f"{path.name} has another version of the format: {one.version}")
            continue
        # whatever a file may lack
        one.first = {rank: one.first.get(rank, last) for rank, last in one.last.items()}
        found = one if found is None else _joined(found, one, path)
    if found is None:
        why = f": {unread[0]}" if unread else ": attach --write leaves files there on each machine"
        raise RequestError(f"{folder} holds no readings{why}")
    found.notes += unread
    return found


def _joined(found: JobReadings, one: JobReadings, path: Path) -> JobReadings:
    """Add the readings of another machine.

    Raises:
        RequestError: they are of another job.
    """
    if (one.job, one.world) != (found.job, found.world):
        raise RequestError(
            f"{path} is of the job {printable(one.job)} with {one.world} ranks, and others are of"
            f" {printable(found.job)} with {found.world}: give the files of one job"
        )
    for rank, reading in one.last.items():
        older = found.last.get(rank)
        if older is not None and older.taken > reading.taken:
            continue
        found.last[rank] = reading
        found.first[rank] = one.first[rank]
    for mine, theirs in ((found.members, one.members), (found.arrived, one.arrived)):
        for group, places in theirs.items():
            known = mine.setdefault(group, {})
            for place, rank_there in places.items():
                if known.get(place) is None:
                    known[place] = rank_there
    found.notes += one.notes
    found.started += one.started
    return found

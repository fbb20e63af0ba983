"""Files that are written as a whole, locks, and the names of signals."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest

from grader.files import is_unfinished, locked, replace_file
from headcount.core.errors import signal_name


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_and_its_folder_are_their_owners_alone(tmp_path):
    replace_file(tmp_path / "folder" / "file", b"data")
    assert (tmp_path / "folder" / "file").read_bytes() == b"data"
    assert mode_of(tmp_path / "folder" / "file") == 0o600
    assert mode_of(tmp_path / "folder") == 0o700


def test_a_replaced_file_keeps_its_mode_and_the_links_to_it(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o644)
    link.symlink_to(file)
    replace_file(link, b"new")
    assert (file.read_bytes(), link.is_symlink()) == (b"new", True)
    assert mode_of(file) == 0o644
    replace_file(file, b"new", 0o600)
    assert mode_of(file) == 0o600


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    seen = []

    def full(name, path):
        seen.append(name)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert is_unfinished(tmp_path / os.path.basename(seen[0]))
    assert not is_unfinished(tmp_path / "file")


HOLD = """
import sys
from pathlib import Path
from grader.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_held_by_one_process_and_ends_with_it(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError), locked(path, wait=False):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(path, wait=False):
        pass


def test_a_signal_without_a_name_has_its_number():
    assert signal_name(signal.SIGKILL) == "SIGKILL"
    assert signal_name(signal.SIGRTMIN + 6) == f"signal {signal.SIGRTMIN + 6}"

"""Submissions as they really arrive: layouts, hostile names, hostile files."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import random
import re
import socket
import tarfile
import threading
import time
import tracemalloc
import unicodedata
import zipfile
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grader.classroom import arrivals as module
from grader.classroom import untrusted_files
from grader.classroom.arrivals import collect
from grader.classroom.gradescope import LARGEST_METADATA, Submitter, submitters
from grader.classroom.names import age, key, module_file_name, raw, shown
from grader.classroom.untrusted_files import STUDENT, is_code, stem
from headcount.core.errors import RequestError, UnreadableFile

SAFE_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def fill(folder, files):
    """Write files by their paths; a path that ends in / is an empty folder."""
    for path, contents in files.items():
        target = folder / path
        if path.endswith("/"):
            target.mkdir(parents=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents)
    return folder


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, contents in files.items():
            archive.writestr(path, contents)
    return stream.getvalue()


def tarred(files, mode="w:gz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for path, contents in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return stream.getvalue()


def found(source, **limits):
    """Who handed in what: {student: {label: contents}}."""
    with collect(source, **limits) as arrivals:
        return {
            one.student: {file.label: file.read() for file in one.files}
            for one in arrivals.submissions
        }


def problems(source, **limits):
    """What is wrong, by student; under None what concerns nobody in particular."""
    with collect(source, **limits) as arrivals:
        wrong = {one.student: one.problems for one in arrivals.submissions if one.problems}
        return wrong | ({None: arrivals.problems} if arrivals.problems else {})


def collect_folders(source, **limits):
    return collect(source, layout="folders", **limits)


def found_folders(source, **limits):
    return found(source, layout="folders", **limits)


def problems_folders(source, **limits):
    return problems(source, layout="folders", **limits)


# ---- layouts -------------------------------------------------------------------------------

FOLDERS = {"Ann Lee/a.py": b"a", "Ann Lee/week/b.ipynb": b"b", "Bob/c.py": b"c"}
FOUND = {"Ann Lee": {"a.py": b"a", "week/b.ipynb": b"b"}, "Bob": {"c.py": b"c"}}


def test_one_folder_per_student(tmp_path):
    assert found_folders(fill(tmp_path, FOLDERS)) == FOUND


@pytest.mark.parametrize("name", ["c.zip", "c.tar", "c.tar.gz", "c.tgz", "c.tar.bz2", "C.TAR.XZ"])
@pytest.mark.parametrize("wrapping", ["", "c/", "C/", "submissions/"])
def test_the_same_in_an_archive(tmp_path, name, wrapping):
    if wrapping in ("c/", "C/"):
        wrapping = name[0] + "/"
    files = {wrapping + path: contents for path, contents in FOLDERS.items()}
    packing = name.lower().rpartition(".")[2]
    modes = {"tar": "w:", "gz": "w:gz", "tgz": "w:gz", "bz2": "w:bz2", "xz": "w:xz"}
    data = zipped(files) if packing == "zip" else tarred(files, modes[packing])
    fill(tmp_path, {name: data})
    assert found_folders(tmp_path / name) == FOUND


def test_a_folder_and_its_archive_give_the_same_keys_and_digests(tmp_path):
    folder = fill(tmp_path / "class", FOLDERS)
    fill(tmp_path, {"class.zip": zipped(FOLDERS), "class.tgz": tarred(FOLDERS)})
    seen = set()
    for source in (folder, tmp_path / "class.zip", tmp_path / "class.tgz"):
        with collect_folders(source) as arrivals:
            seen.add(tuple((one.key, one.read().digest) for one in arrivals.submissions))
    assert len(seen) == 1


def test_a_single_file(tmp_path):
    fill(tmp_path, {"ann.py": b"a", "bob.IPYNB": b"b"})
    assert found(tmp_path / "ann.py") == {"ann": {"ann.py": b"a"}}
    assert found(tmp_path / "bob.IPYNB") == {"bob": {"bob.IPYNB": b"b"}}


def test_a_flat_folder_of_files_and_archives(tmp_path):
    flat = {"ann.py": b"a", "ann.ipynb": b"b", "bob.zip": zipped({"x/c.py": b"c"}), "notes.md": b""}
    assert found(fill(tmp_path, flat), layout="files") == {
        "ann": {"ann.ipynb": b"b", "ann.py": b"a"},
        "bob": {"bob.zip/x/c.py": b"c"},
    }


NBGRADER = {
    "submitted/ann/ps1/timestamp.txt": b"2024-05-01 12:00:00 UTC",
    "submitted/ann/ps1/p.ipynb": b"a",
    "submitted/bob/ps1/p.ipynb": b"b",
    "submitted/bob/ps2/.ipynb_checkpoints/p-checkpoint.ipynb": b"old",
}


@pytest.mark.parametrize("beside", [{}, {"source/ps1/p.ipynb": b"", "nbgrader_config.py": b""}])
def test_nbgrader_at_the_course_and_at_submitted(tmp_path, beside):
    course = fill(tmp_path / "course", NBGRADER | beside)
    expected = {"ann": {"ps1/p.ipynb": b"a"}, "bob": {"ps1/p.ipynb": b"b"}}
    assert found(course) == found(course / "submitted") == expected
    fill(tmp_path, {"x.zip": zipped({f"course/{p}": c for p, c in (NBGRADER | beside).items()})})
    assert found(tmp_path / "x.zip") == expected


def test_nbgrader_with_one_student_of_several_assignments(tmp_path):
    files = {"submitted/ann/ps1/p.ipynb": b"a", "submitted/ann/ps2/q.ipynb": b"b"}
    expected = {"ann": {"ps1/p.ipynb": b"a", "ps2/q.ipynb": b"b"}}
    assert found(fill(tmp_path, files)) == expected


CANVAS = {
    "leeann_LATE_101_9001_lab.ipynb": b"one",
    "leeann_LATE_101_9002_lab-1.ipynb": b"two",
    "bobm_102_9003_my_answer_1_2.py": b"b",
    "öztürk_103_9004_hand in.zip": zipped({"x.py": b"x"}),
    "dee_104_text.html": b"<p>sorry</p>",
    "eve_105_9005_essay.pdf": b"%PDF",
}


def test_canvas_download(tmp_path):
    fill(tmp_path, CANVAS)
    assert found(tmp_path) == {
        "bobm": {"my_answer_1_2.py": b"b"},
        "dee": {},
        "eve": {},
        "leeann": {"lab.ipynb": b"one", "lab-1.ipynb": b"two"},
        "öztürk": {"hand in.zip/x.py": b"x"},
    }
    with collect(tmp_path) as arrivals:
        ann = next(one for one in arrivals.submissions if one.student == "leeann")
        assert ann.number == "101"
        assert [file.label for file in ann.files] == ["lab.ipynb", "lab-1.ipynb"]
        assert [file.upload for file in ann.files] == [9001, 9002]
    assert problems(tmp_path) == {
        "dee": ("no .py or .ipynb file was handed in, but text.html",),
        "eve": ("no .py or .ipynb file was handed in, but essay.pdf",),
        "leeann": ("marked late: lab.ipynb, lab-1.ipynb",),
    }


def test_canvas_key_does_not_depend_on_being_late(tmp_path):
    keys = []
    for number, name in enumerate(("ann_1_2_a.py", "ann_LATE_1_3_a.py")):
        with collect(fill(tmp_path / str(number), {name: b""})) as arrivals:
            keys.append(arrivals.submissions[0].key)
    assert keys[0] == keys[1]


def test_canvas_anonymous_grading(tmp_path):
    fill(tmp_path, {"anon_aB3xY_11_a.py": b"a", "LATE_anon_7Qw1z_12_b.py": b"b"})
    assert found(tmp_path) == {"anon_7Qw1z": {"b.py": b"b"}, "anon_aB3xY": {"a.py": b"a"}}


def test_two_of_one_name_in_canvas_stay_two(tmp_path):
    fill(tmp_path, {"leeann_1_5_a.py": b"a", "leeann_2_6_a.py": b"b"})
    with collect(tmp_path) as arrivals:
        assert [one.number for one in arrivals.submissions] != []
        assert sorted(one.number for one in arrivals.submissions) == ["1", "2"]
        assert all("looks the same" in one.problems[0] for one in arrivals.submissions)


def test_a_stray_file_in_a_canvas_download_gets_a_row(tmp_path):
    fill(tmp_path, CANVAS | {"by email.py": b"e"})
    assert found(tmp_path)["by email"] == {"by email.py": b"e"}


@pytest.mark.parametrize("end", ["_assignsubmission_file_", "_assignsubmission_file"])
def test_moodle_folders(tmp_path, end):
    files = {
        f"Ann Lee_501{end}/lab/a.py": b"a",
        "Ann Lee_501_assignsubmission_onlinetext_/onlinetext.html": b"hello",
        f"Bob_M_502{end}/b.ipynb": b"b",
        "Cy_503_assignsubmission_onlinetext_/onlinetext.html": b"hello",
    }
    fill(tmp_path, files)
    expected = {"Ann Lee": {"lab/a.py": b"a"}, "Bob_M": {"b.ipynb": b"b"}, "Cy": {}}
    assert found(tmp_path) == expected
    with collect(tmp_path) as arrivals:
        assert [one.number for one in arrivals.submissions] == ["501", "502", "503"]
    fill(tmp_path / "z", {"Course-Lab-77.zip": zipped(files)})
    assert found(tmp_path / "z" / "Course-Lab-77.zip") == expected


def test_moodle_flat_files(tmp_path):
    files = {
        "Ann Lee_501_assignsubmission_file_a.py": b"a",
        "Ann Lee_501_assignsubmission_file_b_2_c.py": b"b",
        "Participant_502_assignsubmission_file_hand.tar.gz": tarred({"c.py": b"c"}),
    }
    assert found(fill(tmp_path, files)) == {
        "Ann Lee": {"a.py": b"a", "b_2_c.py": b"b"},
        "Participant": {"hand.tar.gz/c.py": b"c"},
    }


METADATA = b"""---
submission_11:
  :submitters:
  - :name: Ann Lee
    :sid: '007'
    :email: &1 ann@example.org
  :created_at: 2024-05-01 12:00:00.000000000 Z
  :results: {tests: [{name: x, output: "y: [z"}]}
  :history:
  - :id: 9
    :submitters:
    - :name: Nobody
submission_12:
  :submitters:
  - :name: Bob
    :sid: 008
    :email: bob@example.org
  - :name: Cy
    :sid:
    :email: *1
submission_14:
  :submitters:
  - :name: Gone
"""


def test_gradescope_export(tmp_path):
    files = {
        "assignment_5_export/submission_metadata.yml": METADATA,
        "assignment_5_export/submission_11/a.py": b"a",
        "assignment_5_export/submission_12/b.py": b"b",
        "assignment_5_export/submission_13/c.py": b"c",
    }
    fill(tmp_path, files | {"export.zip": zipped(files)})
    for source in (tmp_path / "assignment_5_export", tmp_path / "export.zip"):
        with collect(source) as arrivals:
            rows = [
                (o.student, o.number, o.email, [f.read() for f in o.files])
                for o in arrivals.submissions
            ]
            assert rows == [
                ("Ann Lee", "007", "ann@example.org", [b"a"]),
                ("Bob", "008", "bob@example.org", [b"b"]),
                ("Cy", None, "ann@example.org", [b"b"]),
                ("Gone", None, None, []),
                ("submission_13", None, None, [b"c"]),
            ]
            assert len({one.key for one in arrivals.submissions}) == 5
            assert arrivals.submissions[3].problems[0] == "the export has no folder submission_14"


BROKEN = {
    "no YAML": b"submission_11: [",
    "no mapping": b"- a\n- b\n",
    "nothing": b"",
    "binary": b"\x00\x01\x02\xff",
    "a number": b"1" * 9999,
    "deep": b"a:\n  :submitters: " + b"[" * 100_000,
    "deep in blocks": b"- " * 100_000,
    "too large": b"#" * (LARGEST_METADATA + 1),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_metadata_leave_the_folders_names(tmp_path, kind):
    fill(tmp_path, {"submission_metadata.yml": BROKEN[kind], "submission_11/a.py": b"a"})
    before = time.process_time()
    assert found(tmp_path) == {"submission_11": {"a.py": b"a"}}
    assert problems(tmp_path)[None][0].startswith("submission_metadata.yml ")
    assert time.process_time() - before < 5


def test_a_bomb_of_aliases_is_not_multiplied_out():
    levels = ["a0: &a0 {':submitters': [{':name': x}]}"]
    for n in range(1, 40):
        below = ", ".join([f"*a{n - 1}"] * 9)
        levels.append(f"a{n}: &a{n} {{'<<': [{below}], l: [{below}]}}")
    people = submitters(io.BytesIO("\n".join(levels).encode()))
    assert people["a0"] == (Submitter("x"),)
    assert people["a39"] == ()


@pytest.mark.parametrize("value", ["[]", "{}", "x"])
def test_metadata_that_hold_many_values_take_no_memory_for_them(value):
    """A tree of YAML's nodes would take more than a hundred times the text."""
    data = b"a: [" + f"{value},".encode() * 20_000 + b"]"
    tracemalloc.start()
    try:
        assert submitters(io.BytesIO(data)) == {"a": ()}
        assert tracemalloc.get_traced_memory()[1] < 10 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "value", ["x", "[]", "[x, [y], {z: 1}]", "{a: b}", "~", "*b", "[{':name': [x]}]", "[{[a]: b}]"]
)
def test_submitters_of_other_kinds_are_nobody(value):
    text = f"a: &b {{}}\ns:\n  :submitters: {value}\n  ? [x]\n  : y\n"
    text += "t: {':submitters': [{':sid': 1}]}"
    people = submitters(io.BytesIO(text.encode()))
    assert people == {"a": (), "s": (), "t": (Submitter(sid="1"),)}


# ---- what is inside a submission -----------------------------------------------------------


def test_a_students_own_archive_is_opened_and_one_in_it_is_not(tmp_path):
    inner = zipped({"deep.py": b"d"})
    fill(tmp_path, {"ann/hw.zip": zipped({"w/a.py": b"a", "w/more.zip": inner}), "ann/b.py": b"b"})
    fill(tmp_path, {"class.zip": zipped({"ann/hw.zip": zipped({"a.py": b"a"})})})
    assert found_folders(tmp_path / "class.zip") == {"ann": {"hw.zip/a.py": b"a"}}
    (tmp_path / "class.zip").unlink()
    assert found_folders(tmp_path) == {"ann": {"b.py": b"b", "hw.zip/w/a.py": b"a"}}
    assert problems_folders(tmp_path) == {
        "ann": ("hw.zip/w/more.zip is an archive in an archive; it is not opened",)
    }


def test_a_nested_bomb_costs_one_level(tmp_path):
    bomb = zipped({"0.py": bytes(1 << 20)})
    for _ in range(5):
        bomb = zipped({f"{n}.zip": bomb for n in range(16)})
    fill(tmp_path, {"ann/42.zip": bomb, "bob/b.py": b"b"})
    before = time.process_time()
    assert found_folders(tmp_path) == {"ann": {}, "bob": {"b.py": b"b"}}
    assert (
        "42.zip/0.zip is an archive in an archive; it is not opened"
        in problems_folders(tmp_path)["ann"]
    )
    assert time.process_time() - before < 5


def test_many_archives_of_a_student_share_the_bounds(tmp_path):
    bomb = zipped({"a.py": bytes(1 << 20)})
    fill(tmp_path, {f"ann/{n}.zip": bomb for n in range(100)} | {"bob/b.zip": bomb})
    tight = replace(STUDENT, unpacked=3 << 20)
    assert {name: len(files) for name, files in found_folders(tmp_path, each=tight).items()} == {
        "ann": 3,
        "bob": 1,
    }
    assert problems_folders(tmp_path, each=tight)["ann"][0].endswith(" to more than 3 MB")


def test_a_fault_over_one_students_files_costs_that_row_alone(tmp_path, monkeypatch):
    def unpack(stream, *rest):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(module, "unpack", unpack)
    fill(tmp_path, {"ann/a.zip": zipped({}), "bob/b.py": b"b"})
    assert found_folders(tmp_path) == {"ann": {}, "bob": {"b.py": b"b"}}
    assert problems_folders(tmp_path)["ann"][0].endswith(": ZeroDivisionError: a bug")


def test_a_broken_archive_is_the_students_problem(tmp_path):
    fill(tmp_path, {"ann/a.zip": b"PK nonsense", "bob/b.py": b"b", "cy/c.rar": b"Rar!"})
    assert found_folders(tmp_path) == {"ann": {}, "bob": {"b.py": b"b"}, "cy": {}}
    wrong = problems_folders(tmp_path)
    assert wrong["ann"][0].startswith("a.zip cannot be read as a zip or tar archive")
    assert wrong["ann"][1] == "no .py or .ipynb file could be opened"
    assert wrong["cy"][0] == "c.rar is not opened; a .zip or .tar.gz is needed"


def test_what_programs_leave_behind_is_passed_over(tmp_path):
    junk = {
        "ann/a.py": b"a",
        "ann/__MACOSX/a.py": b"",
        "ann/._a.py": b"",
        "ann/.ipynb_checkpoints/a-checkpoint.ipynb": b"",
        "ann/__pycache__/a.py": b"",
        "ann/.git/hooks/h.py": b"",
        "ann/.venv/lib/x.py": b"",
        "ann/myenv/pyvenv.cfg": b"",
        "ann/myenv/lib/y.py": b"",
        ".DS_Store": b"",
        "__MACOSX/bob/b.py": b"",
    }
    expected = {"ann": {"a.py": b"a"}}
    assert found_folders(fill(tmp_path / "c", junk)) == expected
    assert problems_folders(tmp_path / "c") == {}
    fill(tmp_path, {"c.zip": zipped(junk)})
    assert found_folders(tmp_path / "c.zip") == expected


def test_a_student_with_nothing_gets_a_row_and_the_reason(tmp_path):
    fill(tmp_path, {"ann/": b"", "bob/a.txt": b"", "bob/b.doc": b"", "cy/c.py": b""})
    assert problems_folders(tmp_path) == {
        "ann": ("no .py or .ipynb file was handed in",),
        "bob": ("no .py or .ipynb file was handed in, but a.txt and b.doc",),
    }


def test_a_file_that_is_too_large_is_left_out(tmp_path):
    fill(tmp_path, {"ann/a.py": b"x" * 101, "ann/b.py": b"y"})
    tight = replace(STUDENT, file=100)
    assert found_folders(tmp_path, each=tight) == {"ann": {"b.py": b"y"}}
    assert "a.py is larger than" in problems_folders(tmp_path, each=tight)["ann"][0]


def test_a_file_that_grows_later_is_not_swallowed(tmp_path):
    with collect_folders(fill(tmp_path, {"ann/a.py": b"x"})) as arrivals:
        os.truncate(tmp_path / "ann/a.py", 1 << 40)
        with pytest.raises(UnreadableFile, match="larger than 32 MB"):
            arrivals.submissions[0].files[0].read()
        assert arrivals.submissions[0].read().digest


def test_of_too_many_files_the_newest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_FILES", 3)
    fill(tmp_path, {f"ann/a{n}.py": b"" for n in range(12)})
    assert list(found_folders(tmp_path)["ann"]) == ["a9.py", "a10.py", "a11.py"]
    assert "more than 3 files" in problems_folders(tmp_path)["ann"][0]


def test_too_many_entries_are_the_students_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 5)
    monkeypatch.setattr(untrusted_files, "WIDEST", 8)
    fill(tmp_path, {f"ann/{n}.txt": b"" for n in range(7)} | {"bob/b.py": b"b"})
    fill(tmp_path, {f"cy/{n}.py": b"" for n in range(9)})
    assert found_folders(tmp_path) == {"ann": {}, "bob": {"b.py": b"b"}, "cy": {}}
    wrong = problems_folders(tmp_path)
    assert "more than 5 files and folders" in wrong["ann"][0]
    assert wrong["cy"][0] == "the folder has more than 8 entries; none is looked at"


def test_folders_without_end(tmp_path):
    # deeper than a path may be long, so that only steps from folder to folder reach it
    handle = os.open(fill(tmp_path, {"ann/a.py": b"a"}) / "ann", os.O_RDONLY)
    for _ in range(50):
        os.mkdir("d" * 200, dir_fd=handle)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("b.py", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    assert found_folders(tmp_path) == {"ann": {"a.py": b"a"}}
    assert "folders deep" in problems_folders(tmp_path)["ann"][0]


def test_remarks_on_a_student_are_few_and_short(tmp_path):
    folder = "/".join(["d" * 200] * 20)
    inner = zipped({f"{folder}/{n}.rar": b"" for n in range(30)})
    (said,) = problems_folders(fill(tmp_path, {"ann/a.zip": inner})).values()
    assert (len(said), said[-1]) == (21, "… and 11 more remarks like these")
    assert max(map(len, said)) <= 301


# ---- files that are none -------------------------------------------------------------------


def test_no_link_is_followed(tmp_path):
    secret = fill(tmp_path / "secret", {"s.py": b"secret"})
    root = fill(tmp_path / "class", {"ann/a.py": b"a", "bob/": b""})
    (root / "ann/link.py").symlink_to(secret / "s.py")
    (root / "ann/loop").symlink_to(root)
    (root / "bob/dir").symlink_to(secret)
    (root / "cy").symlink_to(secret)
    (root / "dee.py").symlink_to(secret / "s.py")
    assert found_folders(root) == {"ann": {"a.py": b"a"}, "bob": {}, "cy": {}, "dee.py": {}}
    wrong = problems_folders(root)
    assert wrong["ann"] == (
        "link.py is a symbolic link, which is not opened",
        "loop is a symbolic link, which is not opened",
    )
    assert wrong["cy"][0] == "cy is a symbolic link, which is not opened"


def test_a_folder_that_turns_into_a_link_is_not_followed_either(tmp_path):
    secret = fill(tmp_path / "secret", {"w/a.py": b"secret"})
    root = fill(tmp_path / "class", {"ann/w/a.py": b"a"})
    with collect_folders(root) as arrivals:
        (root / "ann").rename(root / "away")
        (root / "ann").symlink_to(secret)
        with pytest.raises(UnreadableFile, match=r"w/a\.py cannot be read"):
            arrivals.submissions[0].files[0].read()


def test_what_the_instructor_names_may_be_a_link(tmp_path):
    fill(tmp_path / "class", FOLDERS)
    (tmp_path / "here").symlink_to("class")
    assert found_folders(tmp_path / "here") == FOUND


def test_pipes_sockets_and_devices_are_not_opened(tmp_path):
    fill(tmp_path, {"ann/a.py": b"a"})
    os.mkfifo(tmp_path / "ann/pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        handle = os.open(tmp_path / "ann", os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{handle}/socket.py")  # a short path, wherever this runs
        finally:
            os.close(handle)
        assert found_folders(tmp_path) == {"ann": {"a.py": b"a"}}
        assert problems_folders(tmp_path)["ann"] == (
            "pipe.py is a FIFO, which is not opened",
            "socket.py is a socket, which is not opened",
        )
    with pytest.raises(RequestError, match="cannot be read"):
        collect_folders(tmp_path / "ann/pipe.py")


def test_a_file_that_turns_into_a_pipe_does_not_block(tmp_path):
    with collect_folders(fill(tmp_path, {"ann/a.py": b"a"})) as arrivals:
        (tmp_path / "ann/a.py").unlink()
        os.mkfifo(tmp_path / "ann/a.py")
        with pytest.raises(UnreadableFile, match=r"a\.py cannot be read"):
            arrivals.submissions[0].files[0].read()


def without_privileges(function):
    """Call a function in a thread without capabilities: there, root is no more than an owner."""
    outcome = []

    def run():
        libc = ctypes.CDLL(None, use_errno=True)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
        if libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
            outcome.append(OSError(ctypes.get_errno(), "capset"))
        else:
            outcome.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


def test_what_cannot_be_read_is_the_students_problem(tmp_path):
    fill(tmp_path, {"ann/a.py": b"a", "bob/in/b.py": b"b", "bob/c.py": b"c", "cy/d.py": b"d"})
    closed = [tmp_path / "ann", tmp_path / "bob/in", tmp_path / "cy/d.py"]
    for path in closed:
        path.chmod(0)

    def look():
        with collect_folders(tmp_path) as arrivals:
            rows = {one.student: one for one in arrivals.submissions}
            with pytest.raises(UnreadableFile, match=r"d\.py cannot be read: Permission denied"):
                rows["cy"].files[0].read()
            return {name: ([f.label for f in row.files], row.problems, row.read().digest)
                    for name, row in rows.items()}  # fmt: skip

    try:
        rows = without_privileges(look)
    finally:
        for path in closed:
            path.chmod(0o755)
    assert rows["ann"][:2] == (
        [],
        ("the folder cannot be opened: Permission denied", "no .py or .ipynb file could be opened"),
    )
    assert rows["bob"][:2] == (["c.py"], ("in cannot be opened: Permission denied",))
    assert rows["cy"][0] == ["d.py"]


# ---- requests that cannot be served --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "does not exist"),
        ("empty", "holds no submissions"),
        ("text.txt", r"is no folder, no \.py"),
        ("bad.zip", "bad.zip cannot be read as a zip or tar archive"),
        ("a\0b", "cannot be read"),
        ("/dev/null", "cannot be read"),
    ],
)
def test_a_wrong_request_is_one_clear_line(tmp_path, name, message):
    fill(tmp_path, {"empty/": b"", "text.txt": b"", "bad.zip": b"PKxx"})
    with pytest.raises(RequestError, match=message) as caught:
        collect(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_what_was_unpacked_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    fill(tmp_path, {"tmp/": b"", "c.zip": zipped(FOLDERS)})
    with collect_folders(tmp_path / "c.zip") as arrivals:
        assert list((tmp_path / "tmp").iterdir())
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(UnreadableFile):
        arrivals.submissions[0].files[0].read()
    with pytest.raises(RequestError):
        collect(tmp_path / "nothing.zip")
    assert not list((tmp_path / "tmp").iterdir())


# ---- names ---------------------------------------------------------------------------------

HOSTILE = [
    b"--out",
    b"=cmd()",
    b"<script>",
    b"a\nb",
    b'it\'s "x"',
    b"..evil..",
    b"\x1b[31mred",
    b"caf\xe9",
    "\u202eexe".encode(),
    "é".encode(),
    "e\u0301".encode(),
    b"Ann",
    b"ann",
    b"ANN",
    b"con",
    b"nul.txt",
    b" ",
    b"-",
    b"x" * 255,
    b"\xff" * 255,
    "🎓".encode() * 60,
]


def test_hostile_names_are_data(tmp_path):
    for name in HOSTILE:
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        with open(os.path.join(folder, b"a.py"), "wb") as stream:
            stream.write(name)
    with collect_folders(tmp_path) as arrivals:
        rows = arrivals.submissions
        assert sorted(one.files[0].read() for one in rows) == sorted(HOSTILE)
        assert len({one.key.casefold() for one in rows}) == len(HOSTILE)
        assert all(SAFE_KEY.fullmatch(one.key) for one in rows)
        assert all(one.student.encode().decode().isprintable() for one in rows)
        names = {one.student for one in rows}
        assert {"--out", "=cmd()", "<script>", "a\\nb", "\\x1b[31mred", "caf\\xe9"} <= names
        alike = [one.student for one in rows if "looks the same" in " ".join(one.problems)]
        assert sorted(alike) == sorted(["é", "e\u0301", "Ann", "ann", "ANN"])


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("Ada\u200b Lovelace", "ZERO WIDTH SPACE"),
        ("Ada Love\u00adlace", "SOFT HYPHEN"),
        ("Ada\u2800 Lovelace", "BRAILLE PATTERN BLANK"),
        ("\u0410da Lovelace", "CYRILLIC SMALL LETTER A"),
        ("Ada L\u03bfvelace", "GREEK SMALL LETTER OMICRON"),
        ("Ada L\u043evelac\u0435", "CYRILLIC SMALL LETTER O and CYRILLIC SMALL LETTER IE"),
    ],
)
def test_names_that_only_look_the_same_are_told_apart(tmp_path, name, odd):
    """In one note for the instructor, which accuses nobody."""
    fill(tmp_path, {"Ada Lovelace/a.py": b"a", f"{name}/a.py": b"b", "Bob/a.py": b"c"})
    with collect_folders(tmp_path) as arrivals:
        notes = {one.files[0].read(): one.problems for one in arrivals.submissions}
    same = "1 more by a name that looks the same: they are graded apart"
    assert notes == {b"a": (same,), b"b": (f"{same}; only this one has {odd}",), b"c": ()}


@pytest.mark.parametrize(
    "pair",
    [
        ("Анна", "Ана"),
        ("می\u200cخواهم", "مریم"),
        ("Νίκος", "Nikos"),
        ("Zoë", "Zoe"),
        ("Ян", "Jan"),
        ("Işıl", "Isil"),
    ],
)
def test_names_of_other_alphabets_are_names_like_others(tmp_path, pair):
    fill(tmp_path, {f"{name}/a.py": b"a" for name in pair})
    with collect_folders(tmp_path) as arrivals:
        assert [one.problems for one in arrivals.submissions] == [(), ()]


names = st.binary(min_size=1, max_size=80).filter(lambda name: name.strip(b"/. ") != b"")


@given(st.lists(names, min_size=1, max_size=8, unique=True))
@example(["é".encode(), "e\u0301".encode()])
@example([b"a", b"A", b"a ", b"a\0"])
def test_keys_are_safe_and_tell_students_apart(names):
    keys = {key(name, shown(name)) for name in names}
    assert len({k.lower() for k in keys}) == len(names)
    assert all(SAFE_KEY.fullmatch(k) for k in keys)


@given(st.binary(max_size=400))
def test_what_is_shown_is_one_line_that_can_be_written(name):
    text = shown(name)
    assert text.encode("utf-8").decode("utf-8") == text
    assert len(text.splitlines()) <= 1
    assert len(text) <= 255
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text)


@given(st.text())
def test_every_text_has_bytes(text):
    assert isinstance(raw(text), bytes)
    assert shown(raw(text)) or not text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6, unique=True))
def test_names_in_archives_never_become_paths(tmp_path, names):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in names:
            info = tarfile.TarInfo(name + "/a.py")
            archive.addfile(info)
    data = stream.getvalue()
    fill(tmp_path, {"in/c.tar": data})
    before = sorted(tmp_path.rglob("*"))
    # there may be none left, if all names lead out of the archive
    with contextlib.suppress(RequestError), collect_folders(tmp_path / "in/c.tar") as arrivals:
        assert all(SAFE_KEY.fullmatch(one.key) for one in arrivals.submissions)
        assert len({one.key for one in arrivals.submissions}) == len(arrivals.submissions)
        assert all(one.read().digest for one in arrivals.submissions)
    assert sorted(tmp_path.rglob("*")) == before


# ---- which is newer ------------------------------------------------------------------------

IN_ORDER = [
    ["lab.py", "lab-1.py", "lab-2.py", "lab-10.py"],
    ["lab.py", "lab (1).py", "lab (2).py", "lab (10).py"],
    ["Lab.ipynb", "lab-Copy1.ipynb", "LAB-Copy2.ipynb"],
    ["lab.py", "lab copy.py", "lab copy 2.py"],
    ["lab.py", "Copy of lab.py", "Copy (2) of lab.py"],
    ["lab_2024-05-01.py", "lab_2024-05-02.py", "lab 20240502_0900.py", "lab 2024-05-02T09.30.py"],
    ["2023-12-31 lab.py", "2024-01-01 lab.py"],
    ["lab_2024-05-09.py", "lab_2024-05-01-1.py"],
    ["lab2.py", "lab10.py"],
    ["a.py", "a-3.py", "b.py"],
    ["hw.zip/lab.py", "hw-1.zip/lab.py", "hw-2.zip/lab.py"],
    ["attempt 2/lab.py", "attempt 10/lab.py", "x/lab-1.py"],
    ["lab.ipynb", "lab.py"],
]


@pytest.mark.parametrize("labels", IN_ORDER, ids=lambda labels: labels[0])
def test_the_rule_that_says_which_is_newer(labels):
    mixed = labels[:]
    random.Random(3).shuffle(mixed)
    assert sorted(mixed, key=age) == labels


def test_the_upload_decides_between_equal_names():
    assert age("a/lab.py", 7) < age("a/lab.py", 8)
    assert age("lab.ipynb.json") < age("lab.ipynb (1).json") < age("lab (2).ipynb.txt")
    assert stem(b"lab.ipynb.json") == stem(b"lab.ipynb") == b"lab"
    assert is_code(b"lab.IPYNB.TXT")
    assert not is_code(b"lab.json")
    assert age("lab-1.py", 7) > age("lab.py", 8)


def test_files_come_oldest_first(tmp_path):
    labels = ["lab.py", "lab-2.py", "lab (1).py", "zz.py", "lab-10.py"]
    with collect_folders(fill(tmp_path, {f"ann/{label}": b"" for label in labels})) as arrivals:
        files = arrivals.submissions[0].files
        assert [f.label for f in files] == [
            "lab.py",
            "lab (1).py",
            "lab-2.py",
            "lab-10.py",
            "zz.py",
        ]


@given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=6))
@example(["1" * 60, "²", "٣"])
def test_any_names_can_be_put_in_order(labels):
    mixed = labels[::-1]
    assert sorted(labels, key=age) == sorted(mixed, key=age)


# ---- what is kept in a store ---------------------------------------------------------------


def test_the_digest_is_of_labels_and_contents(tmp_path):
    def digest(name, files):
        with collect_folders(fill(tmp_path / name, files)) as arrivals:
            return arrivals.submissions[0].read().digest

    base = digest("1", {"ann/a.py": b"xy", "ann/b.py": b"z"})
    assert digest("2", {"ann/b.py": b"z", "ann/a.py": b"xy", "ann/n.txt": b"?"}) == base
    assert digest("3", {"ann/a.py": b"x", "ann/b.py": b"yz"}) != base
    assert digest("4", {"ann/a.py": b"xy", "ann/c.py": b"z"}) != base


def test_everything_is_the_same_every_time(tmp_path):
    files = {f"s{n}/f{m}.py": b"%d" % m for n in range(30) for m in range(5)} | CANVAS
    for number, order in enumerate((list(files), sorted(files), list(files)[::-1])):
        fill(tmp_path / str(number), {path: files[path] for path in order})
    seen = set()
    for number in range(3):
        with collect_folders(tmp_path / str(number)) as arrivals:
            seen.add(tuple((o.key, o.read().digest, o.problems) for o in arrivals.submissions))
    assert len(seen) == 1


def test_five_hundred_students_are_not_held_in_memory(tmp_path):
    fill(tmp_path, {f"s{n}/a.ipynb": bytes(100_000) for n in range(500)})
    tracemalloc.start()
    try:
        with collect_folders(tmp_path) as arrivals:
            assert len(arrivals.submissions) == 500
            for one in arrivals.submissions:
                assert one.read().digest
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("helpers.py", "helpers.py"),
        ("helpers-1.py", "helpers.py"),
        ("Helpers (2).PY", "Helpers.py"),
        ("helpers-Copy1.py", "helpers.py"),
        ("week_2.py", "week_2.py"),
        ("no-module.py", "no-module.py"),
    ],
)
def test_a_module_is_called_as_it_was_before_it_was_copied(name, module):
    assert module_file_name(name) == module

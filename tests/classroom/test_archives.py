"""Strangers' archives: what comes out, and what a hostile one may cost."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tarfile
import tempfile
import time
import tracemalloc
import zipfile
import zlib
from dataclasses import replace

import pytest

from grader.classroom.untrusted_files import (
    STUDENT,
    ArchiveUsage,
    ExtractionDir,
    File,
    MemoryFolder,
    UnopenedEntry,
    read_whole,
    unpack,
)

MB = 1 << 20
SMALL = replace(STUDENT, members=100, unpacked=4 * MB, kept=2 * MB, file=MB, directory=64 << 10)


@pytest.fixture
def extraction_dir():
    with ExtractionDir() as extraction_dir:
        yield extraction_dir


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, contents in members:
            archive.writestr(name, contents)
    return stream.getvalue()


def tarred(*members, mode="w", form=tarfile.PAX_FORMAT):
    """Members are (name, contents) or TarInfo."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, format=form) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return stream.getvalue()


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def opened(data, extraction_dir, bounds=SMALL):
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()  # what the test took to build the bomb does not count
    return unpack(io.BytesIO(data), b"it", extraction_dir, ArchiveUsage(bounds))


def leaves(folder, path=()):
    """All that is not a folder, by its path."""
    found = {}
    for node in folder.children():
        here = (*path, node.name)
        if isinstance(node, MemoryFolder):
            found |= leaves(node, here)
        else:
            found[b"/".join(here)] = node
    return found


def texts(folder):
    return {p: read_whole(n, "it") for p, n in leaves(folder).items() if isinstance(n, File)}


def reasons(folder):
    return {p: n.reason for p, n in leaves(folder).items() if isinstance(n, UnopenedEntry)}


MEMBERS = (("a.py", b"x = 1"), ("week 1/b.ipynb", b"{}"), ("./week 1/ü.py", b"y"))
EXPECTED = {b"a.py": b"x = 1", b"week 1/b.ipynb": b"{}", "week 1/ü.py".encode(): b"y"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_unpacked_however_it_is_packed(extraction_dir, mode):
    root, problems = opened(tarred(*MEMBERS, mode=mode), extraction_dir)
    assert (texts(root), problems) == (EXPECTED, ())


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_every_dialect_of_tar_is_understood(extraction_dir, form):
    root, problems = opened(tarred(*MEMBERS, form=form), extraction_dir)
    assert (texts(root), problems) == (EXPECTED, ())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_is_unpacked(extraction_dir, method):
    root, problems = opened(zipped(*MEMBERS, method=method), extraction_dir)
    assert (texts(root), problems) == (EXPECTED, ())


def test_several_streams_after_one_another_are_one(extraction_dir):
    data = tarred(*MEMBERS)
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        packed = pack(data[:700]) + pack(data[700:])
        assert texts(opened(packed, extraction_dir)[0]) == EXPECTED


def test_only_what_can_be_graded_is_kept_and_the_rest_is_named(extraction_dir):
    data = zipped(
        ("a.py", b"x"), ("essay.pdf", b"long"), ("__MACOSX/._a.py", b"?"), (".git/h.py", b"")
    )
    root, _ = opened(data, extraction_dir)
    assert texts(root) == {b"a.py": b"x", b"essay.pdf": b""}


OUTWARD = ["../a.py", "/etc/a.py", "x/../../a.py", "C:\\a.py", "c:/a.py"]


@pytest.mark.parametrize(
    ("pack", "name"),
    [*((pack, name) for pack in (zipped, tarred) for name in OUTWARD), (zipped, "..\\a.py")],
)
def test_a_member_that_leads_out_is_refused_and_the_others_are_kept(extraction_dir, pack, name):
    root, problems = opened(pack((name, b"bad"), ("b.py", b"good")), extraction_dir)
    assert texts(root) == {b"b.py": b"good"}
    assert len(problems) == 1
    assert problems[0].startswith("has a member that leads out of it")


def test_backslashes_of_old_windows_programs_are_folders(extraction_dir):
    assert texts(opened(zipped(("w\\a.py", b"x")), extraction_dir)[0]) == {b"w/a.py": b"x"}


def test_links_and_devices_are_noted_and_not_opened(extraction_dir):
    data = tarred(
        link("a.py", "/etc/passwd"),
        link("b.py", "c.py", tarfile.LNKTYPE),
        link("d.py", "", tarfile.FIFOTYPE),
        link("e.py", "", tarfile.CHRTYPE),
        ("c.py", b"good"),
    )
    root, _ = opened(data, extraction_dir)
    assert texts(root) == {b"c.py": b"good"}
    assert sorted(reasons(root)) == [b"a.py", b"b.py", b"d.py", b"e.py"]
    assert "link" in reasons(root)[b"a.py"]


def test_a_zips_symbolic_link_is_not_its_text(extraction_dir):
    info = zipfile.ZipInfo("a.py")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    root, _ = opened(zipped((info, "/etc/passwd")), extraction_dir)
    assert "symbolic link" in reasons(root)[b"a.py"]


def test_an_encrypted_member_is_noted(extraction_dir):
    data = bytearray(zipped(("a.py", b"secret"), ("b.py", b"open")))
    data[6] |= 1  # the local header's flags
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the directory's
    root, _ = opened(bytes(data), extraction_dir)
    assert texts(root) == {b"b.py": b"open"}
    assert "without a password" in reasons(root)[b"a.py"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unpacked_piece_by_piece_is_noted(extraction_dir, method):
    root, _ = opened(zipped(("a.py", b"x"), method=method), extraction_dir)
    assert "plain .zip" in reasons(root)[b"a.py"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_of_two_members_with_one_name_the_last_counts(extraction_dir, pack):
    root, problems = opened(pack(("w/a.py", b"old"), ("w/a.py", b"new")), extraction_dir)
    assert texts(root) == {b"w/a.py": b"new"}
    assert problems == ("has w/a.py more than once; the last one counts",)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_name_that_is_a_file_and_a_folder(extraction_dir, pack):
    root, problems = opened(pack(("a.py", b"one"), ("a.py/b.py", b"two")), extraction_dir)
    assert texts(root) == {b"a.py": b"one"}
    assert len(problems) == 1


def test_names_in_other_encodings_survive(extraction_dir):
    data = zipped(("caf_.py", b"x"), ("na__ve.py", b"y"))
    dos = data.replace(b"caf_.py", b"caf\x82.py")  # é in DOS
    unsaid = dos.replace(b"na__ve.py", "naïve.py".encode())  # UTF-8 without saying so
    assert texts(opened(unsaid, extraction_dir)[0]) == {
        "café.py".encode(): b"x",
        "naïve.py".encode(): b"y",
    }
    odd = tarred(("caf_.py", b"x"), form=tarfile.GNU_FORMAT)
    header = bytearray(odd[:512].replace(b"caf_", b"caf\xe9"))
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    assert texts(opened(bytes(header) + odd[512:], extraction_dir)[0]) == {b"caf\xe9.py": b"x"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        b"PK\x05\x06" + b"\0" * 18,
        b"\x1f\x8b" + b"x" * 99,
        b"BZh9" + b"x" * 99,
        b"\xfd7zXZ\0" + b"x" * 99,
        b"x" * 2000,
        tarred(("a.py", b"x" * 3000))[:1500],
        zipped(("a.py", b"x" * 3000))[:-9],
        tarred(("a.py", b"x" * 3000), mode="w:xz")[:90],
    ],
    ids=range(10),
)
def test_what_is_broken_is_noted(extraction_dir, data):
    root, problems = opened(data, extraction_dir)
    assert texts(root) == {}
    assert problems or data.startswith(b"PK\x05\x06")  # an empty zip is none of these


def test_a_foreign_archive_is_named(extraction_dir):
    assert "RAR or 7z" in opened(b"Rar!\x1a\x07\x01\x00 more", extraction_dir)[1][0]


def test_a_damaged_member_costs_only_itself(extraction_dir):
    data = zipped(("a.py", b"abcdefgh"), ("b.py", b"fine"), method=zipfile.ZIP_STORED)
    root, _ = opened(data.replace(b"abcdefgh", b"abcdefgX", 1), extraction_dir)
    assert texts(root) == {b"b.py": b"fine"}
    assert reasons(root)[b"a.py"].startswith("damaged")


# ---- bombs ---------------------------------------------------------------------------------


@pytest.fixture
def cheap():
    """What a bomb may cost: bounded memory, and no more than seconds."""
    tracemalloc.start()
    before = time.process_time()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * MB
    assert time.process_time() - before < 10


def test_zeros_where_a_tar_should_be_are_an_empty_one(extraction_dir, cheap):
    bomb = zlib.compressobj(9, wbits=31)
    data = b"".join(bomb.compress(bytes(MB)) for _ in range(64)) + bomb.flush()
    root, problems = opened(data, extraction_dir)
    assert root == MemoryFolder(b"it")
    # Python 3.10's tarfile reads the last byte once more
    back = ("cannot be read as a zip or tar archive: the archive asks to go back",)
    assert problems == (back if sys.version_info < (3, 11) else ())


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_packed_tar_with_much_in_it_ends_at_the_bound(extraction_dir, cheap, mode):
    data = tarred(("a.py", b"x"), *((f"{n}.bin", bytes(3 * MB)) for n in range(4)), mode=mode)
    root, problems = opened(data, extraction_dir)
    assert texts(root)[b"a.py"] == b"x"
    assert problems == ("unpacks to more than 4 MB",)


def test_a_member_that_is_packed_like_a_bomb_is_left_out(extraction_dir, cheap):
    bounds = replace(SMALL, file=64 * MB, unpacked=64 * MB, kept=64 * MB, slack=MB)
    root, _ = opened(zipped(("a.py", bytes(8 * MB)), ("b.py", b"fine")), extraction_dir, bounds)
    assert texts(root) == {b"b.py": b"fine"}
    assert "like a zip bomb" in reasons(root)[b"a.py"]


def test_a_zip_that_lies_about_sizes_is_not_believed(extraction_dir, cheap):
    data = bytearray(zipped(("a.py", bytes(3 * MB)), ("b.py", b"fine")))
    directory = data.index(b"PK\x01\x02")
    for at in (22, directory + 24):
        data[at : at + 4] = struct.pack("<I", 10)
    root, _ = opened(bytes(data), extraction_dir)
    assert texts(root) == {b"b.py": b"fine"}
    assert reasons(root)[b"a.py"].startswith("damaged")
    for at in (22, directory + 24):
        data[at : at + 4] = struct.pack("<I", 0xFFFFFFF0)
    assert "larger than 1 MB" in reasons(opened(bytes(data), extraction_dir)[0])[b"a.py"]


def test_members_that_share_their_bytes_count_each(extraction_dir, cheap):
    # as in overlapping bombs: one compressed piece, many entries of the directory
    data = zipped(("a.py", b"0" * (MB - 1)))
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entries = b"".join(data[start:end] for _ in range(50))
    tail = data[end : end + 8] + struct.pack("<HHII", 50, 50, len(entries), start) + b"\0\0"
    root, problems = opened(data[:start] + entries + tail, extraction_dir)
    assert len(texts(root)) <= 1
    assert problems


def test_too_many_members_end_it(extraction_dir, cheap):
    for pack in (zipped, tarred):
        root, problems = opened(pack(*((f"{n}.py", b"") for n in range(150))), extraction_dir)
        assert len(texts(root)) == 100
        assert problems == ("has more than 100 members; the rest is not looked at",)


def test_a_huge_directory_is_not_even_read(extraction_dir, cheap):
    data = zipped(*((f"{'n' * 200}{n}.txt", b"") for n in range(400)))
    _, problems = opened(data, extraction_dir)
    assert problems == ("has too much in its directory to be looked at",)


def test_a_tar_of_a_terabyte_of_nothing(extraction_dir, cheap):
    # GNU's sparse files: one block of data at the far end
    name, size = b"a.py", 1 << 40
    header = bytearray(512)
    header[0:4] = name
    header[100:108], header[108:116], header[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    header[124:136] = b"%011o\0" % 512
    header[136:148] = b"%011o\0" % 0
    header[156:157] = b"S"
    header[257:265] = b"ustar  \0"
    header[386:398] = b"\x80" + (size - 512).to_bytes(11, "big")
    header[398:410] = b"%011o\0" % 512
    header[483:495] = b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    data = bytes(header) + b"x" * 512 + tarred(("b.py", b"fine"))
    root, problems = opened(data, extraction_dir)
    assert reasons(root) == {b"a.py": "larger than 1 MB"}
    assert (texts(root), problems) == ({b"b.py": b"fine"}, ())


def test_a_tars_endless_header_is_not_read_into_memory(extraction_dir, cheap):
    info = tarfile.TarInfo("h")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    data = gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(32 * MB))
    _, problems = opened(data, extraction_dir)
    assert problems == ("has too much in its headers to be looked at",)


def test_xz_may_not_ask_for_gigabytes(extraction_dir, cheap):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    data = bytearray(lzma.compress(tarred(*MEMBERS), filters=filters))
    at = data.index(b"\x21\x01", 12) + 2  # the size of the dictionary in the block's header
    data[at] = 40  # four gigabytes
    end = 12 + (data[12] + 1) * 4
    data[end - 4 : end] = struct.pack("<I", zlib.crc32(bytes(data[12 : end - 4])))
    _, problems = opened(bytes(data), extraction_dir)
    assert "emory" in problems[0]


def test_what_is_stored_has_names_of_ours_and_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = zipped(("a.py", bytes(2 * MB)), ("../../evil.py", b"x"), ("b.py", b"y"))
    with ExtractionDir() as extraction_dir:
        opened(data, extraction_dir)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [path.name for path in folder.iterdir()] == ["00000002"]
    assert not list(tmp_path.iterdir())


def test_a_class_that_fills_the_disk_is_stopped():
    with ExtractionDir(room=10) as extraction_dir:
        root, problems = opened(zipped(("a.py", b"123456"), ("b.py", b"123456")), extraction_dir)
        assert texts(root) == {b"a.py": b"123456"}
        assert "used up" in problems[0]

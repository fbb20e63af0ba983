"""Tables of people and grades, in every form in which spreadsheets and platforms write them."""

from __future__ import annotations

import csv
import io

import pytest

from grader.classroom.assignment import RosterStudent
from grader.classroom.canvas import canvas
from grader.classroom.gradebooks import Table, as_number
from grader.classroom.moodle import COLUMNS, moodle
from grader.classroom.results import ClassResults, SubmissionRow
from grader.classroom.roster import read_roster
from headcount.core.errors import RequestError
from tests.classes import ASKED, passed

#: What Excel writes, and other programs for it: the text's form, and its encoding.
FORMS = {
    "CSV UTF-8": ("{0},{1}\r\n", "utf-8-sig"),
    "CSV, of an English Excel": ("{0},{1}\r\n", "cp1252"),
    "CSV, of a German Excel": ("{0};{1}\r\n", "cp1252"),
    "Unicode Text": ("{0}\t{1}\r\n", "utf-16"),
    "of a Mac": ("{0},{1}\r", "utf-8"),
    "of Linux": ("{0},{1}\n", "utf-8"),
    "big end first": ("{0}\t{1}\n", "utf-16-be"),
}


def put(tmp_path, data, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def formed(form, lines, before=""):
    line, encoding = FORMS[form]
    text = before + "".join(line.format(*cells) for cells in lines)
    return (b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "\r\n\r\n"])
def test_a_roster_is_read_in_every_form(tmp_path, form, before):
    lines = [("Name", "E-Mail"), ("Zoë Müller", "zoe@x"), ('"Ng; Bo, Li"', "bo@x")]
    (zoe, bo) = read_roster(put(tmp_path, formed(form, lines, before)))
    assert (zoe.name, zoe.email) == ("Zoë Müller", "zoe@x")
    assert (bo.name, bo.email) == ("Ng; Bo, Li", "bo@x")


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\n', "SEP=;\r\n\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_line_that_names_the_separator_is_no_header(tmp_path, line, encoding):
    # without it, the commas of the header would win
    text = f"{line}Name;Points, all, of them\r\nZoë;1\r\n"
    assert Table(put(tmp_path, text.encode(encoding)), "a table").rows == [
        ["Name", "Points, all, of them"],
        ["Zoë", "1"],
    ]


def test_commas_in_quotes_and_short_lines_do_not_move_the_columns(tmp_path):
    text = '"a, b, c";"d"\n1\n\n2;3\n'
    assert Table(put(tmp_path, text), "a table").rows == [["a, b, c", "d"], ["1", ""], ["2", "3"]]


def test_what_is_no_text_is_refused_with_the_mend(tmp_path):
    for data in (b"PK\x03\x04" + bytes(99), b"\xd0\xcf\x11\xe0" + bytes(99)):
        with pytest.raises(RequestError, match="workbook of Excel's; save it as 'CSV UTF-8'"):
            read_roster(put(tmp_path, data))
    for data in ("Name\nAnn".encode("utf-16-le"), b"\xff\xfeN", b"Name\n\x81"):
        with pytest.raises(RequestError, match="roster: it is no text; save it as 'CSV UTF-8'"):
            read_roster(put(tmp_path, data))
    with pytest.raises(RequestError, match="roster: No such file"):
        read_roster(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *(("1", 1), ("9.5", 9.5), ("9,5", 9.5), (" 10 ", 10), ("-0,25", -0.25), (".5", 0.5)),
        *(("1,000", 1000), ("1,000.00", 1000), ("1.000,00", 1000), ("1,234,567", 1234567)),
        *(("1.234.567", 1234567), ("12,345.5", 12345.5), ("1000,5", 1000.5)),
        *(("1 000,00", 1000), ("1\u202f000", 1000), ("1'000.00", 1000), ("1 00", None)),
        *(("0,125", 0.125), ("1.000", 1), ("1,00", 1), ("1234,567", 1234.567)),
        *(("", None), ("EX", None), ("nan", None), ("inf", None), ("1,2 of 3", None), (",", None)),
    ],
)
def test_a_number_has_a_decimal_mark_and_marks_between_thousands(cell, number):
    assert as_number(cell) == number


# Two columns for one thing. -------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "one", "other"),
    [
        ("name,email,Name", "'name' (column 1)", "'Name' (column 3)"),
        ("Student Name,name", "'Student Name' (column 1)", "'name' (column 2)"),
        ("name,Email,E-Mail", "'Email' (column 2)", "'E-Mail' (column 3)"),
        ("name,id, ID ", "'id' (column 2)", "'ID' (column 3)"),
        ("First name,Surname,Last name", "'Surname' (column 2)", "'Last name' (column 3)"),
    ],
)
def test_a_roster_with_two_columns_for_one_thing_is_refused(tmp_path, header, one, other):
    with pytest.raises(RequestError) as caught:
        read_roster(put(tmp_path, f"{header}\nAnn,x,Group 7\n"))
    assert f"has two columns for the same thing, {one} and {other}" in str(caught.value)
    assert "delete or rename the one that is not meant" in str(caught.value)


def test_two_columns_that_nobody_reads_do_no_harm(tmp_path):
    (ann,) = read_roster(put(tmp_path, "name,remark,remark\nAnn,1,2\n"))
    assert ann == RosterStudent("Ann", None, ())


@pytest.mark.parametrize("name", ["Identifier", "Grade", "Maximum Grade", "Feedback comments"])
def test_a_worksheet_with_a_column_twice_is_refused(tmp_path, name):
    results = ClassResults("Week 2", "now", (), ASKED)
    path = put(tmp_path, ",".join([*COLUMNS, name]) + "\n")
    with pytest.raises(RequestError, match=rf"two columns .* '{name}' \(column 11\)"):
        moodle(results, path)


# Rosters that say a thing twice. --------------------------------------------------


def test_a_line_that_is_there_twice_is_one_student(tmp_path):
    lists = "name,id,section\nAnn,1,A\nBo,2,A\nann ,3,B\nAnn,1,B\n"
    assert [(one.name, one.numbers[0][0]) for one in read_roster(put(tmp_path, lists))] == [
        ("Ann", "1"),
        ("Bo", "2"),
        ("ann", "3"),
    ]


def test_two_students_of_one_number_are_refused(tmp_path):
    with pytest.raises(RequestError, match="has X1 in the column 'ID' for two students, Ann and B"):
        read_roster(put(tmp_path, "Name,ID\nAnn,x1\nBo,X1\n"))
    assert len(read_roster(put(tmp_path, "Name,ID\nAnn,\nBo,\n"))) == 2


def test_a_number_that_excel_has_shortened_is_refused(tmp_path):
    for cell in ("1.23457E+11", '"1,23457E+11"'):
        with pytest.raises(RequestError, match="Excel has shortened a number"):
            read_roster(put(tmp_path, f"Name,ID\nAnn,{cell}\n"))


def test_brightspaces_class_list_is_a_roster(tmp_path):
    text = "OrgDefinedId,Username,Last Name,First Name,Email\n#77,#u1,Lee,Ann,ann@x\n"
    (ann,) = read_roster(put(tmp_path, text))
    assert (ann.name, ann.email) == ("Ann Lee", "ann@x")
    assert {number for number, _ in ann.numbers} >= {"77", "u1"}


# What is filled in. ---------------------------------------------------------------

HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 2")


def filled(path, delimiter):
    rows = (SubmissionRow("z", "Zoë", number="101", exercises=(passed(),)),)
    made = canvas(ClassResults("Week 2", "now", rows, ASKED[:1]), path)
    text = made.data.decode("utf-8-sig")
    assert made.data.startswith(b"\xef\xbb\xbf")
    return made, list(csv.reader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_a_gradebook_that_excel_has_saved_is_filled_in_and_written_in_utf8(
    tmp_path, encoding, delimiter
):
    lines = [HEAD, ("    Points Possible", *[""] * 4, "10"), ("Zoë", "1", "101", "", "A", "")]
    data = "\r\n".join(map(delimiter.join, lines)).encode(encoding)
    _, rows = filled(put(tmp_path, data), delimiter)
    assert rows == [*map(list, lines[:2]), ["Zoë", "1", "101", "", "A", "10"]]


@pytest.mark.parametrize("possible", ["1,000.00", "1.000,00", "1,000"])
def test_points_possible_above_a_thousand_are_read_and_left_alone(tmp_path, possible):
    lines = [HEAD, ("    Points Possible", *[""] * 4, possible), ("Zoë", "1", "101", "", "A", "")]
    made, rows = filled(put(tmp_path, "\n".join(map(";".join, lines)).encode("utf-8-sig")), ";")
    assert made.scaled == 1000
    assert [row[5] for row in rows] == ["Week 2", possible, "1000"]

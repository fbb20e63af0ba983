"""Everybody's feedback page in one archive, named so that people and platforms find whose it is.

- Canvas takes comments back by "Upload Submissions" and the names of its own download,
  ``<name>_<user>_<upload>_<file>`` (``infer_comment_context_from_filename`` in
  https://github.com/instructure/canvas-lms).
- Moodle takes feedback files back by "Upload multiple feedback files in a zip":
  ``<full name>_<participant>_assignfeedback_file_<file>`` (``mod/assign/feedback/file/
  importziplib.php`` in https://github.com/moodle/moodle), where the assignment has the feedback
  type Feedback files.
- Any other page is named after the student.
"""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile

from grader.classroom.pages import feedback
from grader.classroom.results import ClassResults, SubmissionRow

__all__ = ["feedback_names", "feedback_zip"]

#: Characters that a file name may not have somewhere, or that separate the parts of one.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\\\:*?"<>|_\ud800-\udfff]+')

#: Characters of a student's name in a file's.
_LONGEST = 60

#: The earliest time that a zip can store, so that the same pages make the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)


def feedback_zip(results: ClassResults) -> bytes:
    """Return the archive of all pages whose score is final."""
    names = feedback_names(results)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in results.rows:
            if not results.ungraded(row):
                entry = zipfile.ZipInfo(names[row.key], _WHEN)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o600 << 16
                archive.writestr(entry, feedback(results, row))
    return buffer.getvalue()


def feedback_names(results: ClassResults) -> dict[str, str]:
    """Return the name of each page in the archive, by the submission's key."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for row in results.rows:
        name = _name(row)
        if _folded(name) in taken:
            name = f"{name.removesuffix('.html')} ({row.key}).html"
        taken.add(_folded(name))
        found[row.key] = name
    return found


def _name(row: SubmissionRow) -> str:
    student = _UNSAFE.sub(" ", row.student)[:_LONGEST].strip(" .") or row.key
    if row.platform == "canvas" and row.number and row.upload:
        return f"{student}_{row.number}_{row.upload}_feedback.html"
    if row.platform == "moodle" and row.number:
        return f"{student}_{row.number}_assignfeedback_file_feedback.html"
    return f"{student}.html"


def _folded(name: str) -> str:
    """Return a text that is equal for names that a file system may take for the same."""
    return unicodedata.normalize("NFC", name).casefold()

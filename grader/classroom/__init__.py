"""A whole class: many submissions, as they really arrive.

The layout, from the bottom up; an import runs downward only:

- ``names`` — names are data: what to show, a key that is safe as a file name,
  and which of two files is the newer
- ``tree`` — folders and files, on a disk or out of an archive, as one kind of tree
- ``archives`` — zip and tar, unpacked within bounds
- ``gradescope`` — the metadata file of Gradescope's export
- ``layouts`` — whose file is which: Canvas, Moodle, Gradescope, nbgrader, folders
- ``arrivals`` — all of it together: :func:`~grader.classroom.arrivals.collect`
"""

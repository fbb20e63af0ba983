"""A whole class: many submissions as they really arrive, judged and kept.

The layout, from the bottom up; an import runs downward only:

- ``names`` — names are data: what to show, a key that is safe as a file name,
  and which of two files is the newer
- ``tree`` — folders and files, on a disk or out of an archive, as one kind of tree
- ``archives`` — zip and tar, unpacked within bounds
- ``gradescope`` — the metadata file of Gradescope's export
- ``layouts`` — whose file is which: Canvas, Moodle, Gradescope, nbgrader, folders
- ``arrivals`` — all of it together: :func:`~grader.classroom.arrivals.collect`
- ``plan`` — which exercises a submission is judged on, and from which file
- ``fingerprint``, ``orders`` — what a verdict depends on; what a worker is asked for
- ``warden``, ``grading`` — one submission judged, in a sandbox of its own
- ``engines`` — many submissions side by side, here or on a cluster
- ``similarity`` — which submissions are alike beyond what the exercise explains
- ``store`` — what has been judged, kept whatever happens
- ``session`` — a class from its arrival to the store
- :mod:`~grader.classroom.outputs` — what comes of it: gradebooks and pages
- ``report`` — the store as such outputs
- ``command`` — what ``python -m grader grade`` and ``export`` print
"""

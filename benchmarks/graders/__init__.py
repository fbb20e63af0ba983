"""Our grader beside nbgrader and Otter, on the same submissions."""

"""What judges one submission, as far as it takes no process: exercises, submissions, reports."""

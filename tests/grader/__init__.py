"""What judges one submission: exercises, verdicts, reports, and what people type and see."""

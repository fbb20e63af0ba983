"""The course itself: its answers, sources and numbers, and what stands beside its chapters."""

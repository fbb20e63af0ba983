"""Many submissions: how they arrive, are graded, and handed on."""

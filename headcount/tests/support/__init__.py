"""What the tests of the engine, and those of what uses it, share."""

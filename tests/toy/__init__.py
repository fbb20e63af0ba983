"""A course of two exercises, to test the tools without our own content."""

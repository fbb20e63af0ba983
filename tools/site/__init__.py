"""The course as web pages, to read before installing anything."""

"""Records which functions of this repository each test runs, for ``make quick``."""

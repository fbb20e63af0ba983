"""Is imported by every interpreter that a recorded test starts: it marks functions, too."""

import runpy
from pathlib import Path

# by its path, since this repository need not be among the paths of the interpreter
runpy.run_path(str(Path(__file__).parent.with_name("marks.py")))["start"]()

"""``python -m tools.pictures``."""

import sys

from tools.pictures import main

sys.exit(main())

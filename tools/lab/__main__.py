"""What ``python -m tools.lab`` runs."""

from tools.lab.server import main

main()

#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image; it has the network then.
set -euo pipefail

AUTOGRADER="${AUTOGRADER:-/autograder}"

apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    python3 python3-venv bubblewrap

python3 -m venv "$AUTOGRADER/venv"
# The versions that the course was tested with; torch without the parts for GPUs.
"$AUTOGRADER/venv/bin/python" -m pip install --no-cache-dir \
    --extra-index-url https://download.pytorch.org/whl/cpu \
    --constraint "$AUTOGRADER/source/gather-round/requirements.lock" \
    "$AUTOGRADER/source/gather-round/headcount" "$AUTOGRADER/source/gather-round[class]"
"$AUTOGRADER/venv/bin/python" -m grader doctor || true

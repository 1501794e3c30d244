"""The reference learners. Each command is a module here; what they share lies in the folders beside."""

import os

# Before torch loads OpenMP: threads that wait sleep instead of spinning. Spinning ones take the processors from
# whatever else runs, from other runs of ours above all (docs/log.md has the numbers).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

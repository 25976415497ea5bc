"""The command under test: the one that belongs to the Python that runs the tests."""

import sys
from pathlib import Path

CFN = Path(sys.executable).parent / "cfn"

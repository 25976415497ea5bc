"""Entry point of `python -m cfn`, which equals the command `cfn`."""

import sys

from cfn.cli.main import main

sys.exit(main())

"""`python -m cfn` is `cfn`."""

import sys

from cfn.cli import main

sys.exit(main())

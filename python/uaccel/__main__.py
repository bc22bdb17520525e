"""``python -m uaccel`` is the ``uaccel`` command."""

import sys

from uaccel.cli import main

sys.exit(main())

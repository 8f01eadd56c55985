"""python -m logstore: the command line."""

from __future__ import annotations

import sys

from logstore.commands import main

if __name__ == "__main__":
    sys.exit(main())

"""The command line as `python -m byokg`."""

from __future__ import annotations

import sys

from byokg.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

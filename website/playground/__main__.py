"""Writes what the page in the browser downloads into the built site: ``python -m website.playground build/site/playground``."""

import sys
from pathlib import Path

from website.playground.bundle import write_bundle

write_bundle(Path(sys.argv[1]))

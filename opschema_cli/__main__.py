"""``python -m opschema_cli``. Python puts the current folder, which may be hostile, before all else; nothing is imported from it."""

import os
import sys

if sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from opschema_cli.main import main

main()

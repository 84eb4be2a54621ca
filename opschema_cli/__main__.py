"""``python -m opschema_cli``, without the current folder on the module path: what lies there may be hostile."""

import os
import sys

if sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from opschema_cli.main import main

main()

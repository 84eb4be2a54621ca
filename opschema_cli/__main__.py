"""``python -m opschema_cli``: takes the current folder off the module path, so that nothing there is imported from here on.

That comes too late for a folder that holds a package ``opschema_cli`` itself: Python runs that one. In a tree that is not
trusted use the command ``opschema``, or ``python -P -m opschema_cli``.
"""

import os
import sys

if sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from opschema_cli.main import main

main()

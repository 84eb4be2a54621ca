"""``python -m opschema_cli``."""

from opschema_cli.main import main

main()

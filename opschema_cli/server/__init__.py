"""The language server: shows the findings of the command line in texts that are being edited."""

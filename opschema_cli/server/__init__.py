"""The language server: what the command line finds, shown while texts are being edited."""

"""The subcommands, one module each, thin: parse options, call the engine, hand to a reporter."""

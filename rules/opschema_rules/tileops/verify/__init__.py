"""Plans for ``opschema verify``: what a manifest says can be called, and how, told without running anything."""

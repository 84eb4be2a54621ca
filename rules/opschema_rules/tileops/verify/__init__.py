"""Plans for ``opschema verify``: the calls that a manifest describes, derived without running anything."""

"""The packs that ship with opschema: one folder for each kind of op schema repository."""

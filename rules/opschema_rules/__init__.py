"""The packs that ship with opschema: one folder for each kind of op schema repository."""

PAGES = "https://github.com/opschema/opschema/blob/main/docs/rules/{code}.md"
"""The address of a rule's page."""

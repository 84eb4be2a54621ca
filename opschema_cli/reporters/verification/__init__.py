"""Reports of ``opschema verify``: a table for people, JSON, and pages with plots."""

"""Speed and memory of opschema, side by side with its peers, against generated and real repositories."""

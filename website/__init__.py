"""The site: the pages of ``docs``, a catalogue of rules, and pictures of reports (``make site``)."""

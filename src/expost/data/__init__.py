"""Records: their declared domain, their tables and files, and their encoding as rows."""

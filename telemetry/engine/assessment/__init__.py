"""First contact: what a facility's accounting says by itself, from text dumps, without a database."""

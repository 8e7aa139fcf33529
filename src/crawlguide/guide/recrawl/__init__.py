"""Pages that are fetched again: what is known of them, when each is due, and what is promised of their age."""

"""One function is one column; the same code online and offline."""

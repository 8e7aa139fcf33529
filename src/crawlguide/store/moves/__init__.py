"""What changes a frontier: one file for each move of a URL between its states."""

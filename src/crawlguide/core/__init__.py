"""Words everybody uses. Imports nothing of ours."""

"""Crash tests: a real server is killed while a fleet works, and what it promised is held against what it kept."""

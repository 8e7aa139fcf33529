"""The playground: measure, compare, simulate."""

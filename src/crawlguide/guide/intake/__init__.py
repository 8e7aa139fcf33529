"""Messages become columns: every URL is brought into its one form here, and nowhere else."""

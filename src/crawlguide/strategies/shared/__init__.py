"""What several strategies use: reproducible draws, record tables, the plain sampler."""

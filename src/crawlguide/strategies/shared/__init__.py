"""What several strategies use: reproducible draws, records of URLs, outcomes of fetches, the plain sampler."""

"""robots.txt and sitemaps: fetched safely, kept, and obeyed."""

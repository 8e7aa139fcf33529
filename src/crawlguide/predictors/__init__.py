"""Some to values: what is it worth to fetch each candidate?"""

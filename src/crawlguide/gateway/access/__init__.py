"""Who may come in: credentials, what each may do, how often it may ask, and what admins did."""

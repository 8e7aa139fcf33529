"""What is known of URLs, hosts, links and leases.

`memory` and `embedded` are the plugs. Both are a `LocalStore`: crawls with a `Frontier` each, whose `tables` are
columns and whose `queues` say what waits; `moves` holds the operations, `views` what others may look at.
"""

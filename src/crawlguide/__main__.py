"""`python -m crawlguide` is the command `crawlguide`."""

from crawlguide.cli import main

main()

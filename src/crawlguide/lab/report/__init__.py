"""Results for people: a table in the terminal and one HTML page that needs nothing else."""

from crawlguide.lab.report.error_budget import budget_tables, write_budget_html
from crawlguide.lab.report.page import write_html
from crawlguide.lab.report.terminal import table

__all__ = ["budget_tables", "table", "write_budget_html", "write_html"]

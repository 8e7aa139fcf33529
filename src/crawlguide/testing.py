"""What tests outside this package need: a clock that only moves when told to."""

from crawlguide.core.clock import ManualClock

__all__ = ["ManualClock"]

"""The plugs. A new part is one file that fits one of these.

Stores and guides are async: memory never suspends, a disk suspends only for durability, a network for the network.
"""

from crawlguide.core.protocols.filters import Defers, Filter, Hears, Rests, Sees, Shuts, Withholds
from crawlguide.core.protocols.guide import Guide
from crawlguide.core.protocols.judges import Explains, Explores, Learner, Predictor, Sampler, Strategy
from crawlguide.core.protocols.store import Store

__all__ = [
    "Defers",
    "Explains",
    "Explores",
    "Filter",
    "Guide",
    "Hears",
    "Learner",
    "Predictor",
    "Rests",
    "Sampler",
    "Sees",
    "Shuts",
    "Store",
    "Strategy",
    "Withholds",
]

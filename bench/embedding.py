"""What static embeddings know of pages and links, by the labels of recorded webs.

    .venv/bin/python -m bench.embedding [TABLE.npz ...] [--wordllama] [--pages 20000] [--links 100000]

For each topic, pages are ranked by the cosine of its name and of their text (2 000 characters), title or URL words, and
links by that of their anchor (a link counts if its target is on topic): AUC / average precision, mean over the topics.
`--wordllama` needs `pip install wordllama`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench import labels

from crawlguide.features.embedding import Embedding, words_of
from crawlguide.features.embedding.table import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Embed = Callable[[Sequence[str]], NDArray[np.float32]]

READ = 2_000
WHAT = ("text", "title", "url", "anchor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, default=[SHIPPED])
    parser.add_argument("--wordllama", action="store_true")
    parser.add_argument("--webs", nargs="*", default=["docsweb", "debpkg", "wikispeedia"])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--links", type=int, default=100_000)
    given = parser.parse_args()
    candidates: dict[str, Embed] = {path.stem: Embedding.load(path).embed for path in given.tables}
    if given.wordllama:
        candidates["wordllama"] = wordllama()
    print(f"| embedding | web | {' | '.join(WHAT)} | µs a text |\n|---|---|{'---|' * (len(WHAT) + 1)}")
    for web in given.webs:
        shown, links = labels.pages(labels.WEBS / web, given.pages), labels.anchors(labels.WEBS / web, given.links)
        for name, embed in candidates.items():
            print(f"| {name} | {web} | {' | '.join(measured(embed, shown, links))} |")


def measured(embed: Embed, pages: labels.Pages, links: labels.Anchors) -> list[str]:
    """One row of the table: text, title, url, anchor, and the time of a text."""
    goal = embed([topic_words(topic) for topic in pages.topics])
    texts = [text[:READ] for text in pages.text]
    began = time.perf_counter()
    vectors = embed(texts)
    microseconds = (time.perf_counter() - began) / len(texts) * 1e6
    columns = [vectors, embed(pages.title), embed([words_of(url) for url in pages.url])]
    cells = [cell(pages.labels, column @ goal.T) for column in columns]
    cells[0] = cells[0] if any(texts) else "–"
    return [*cells, cell(links.labels, embed(links.anchor) @ goal.T), f"{microseconds:.0f}" if any(texts) else "–"]


def cell(truth: labels.Labels, scores: NDArray[np.float32]) -> str:
    area, precision = labels.worth(truth, scores.astype(np.float64))
    return f"{area:.3f} / {precision:.3f}"


def topic_words(topic: str) -> str:
    """A topic's name as the tasks write it: field::biology, Design_and_Technology."""
    return topic.replace("::", " ").replace("_", " ").replace("-", " ")


def wordllama() -> Embed:
    import wordllama as package  # noqa: PLC0415 - only where it is asked for

    model: Any = package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        with np.errstate(invalid="ignore"):  # it divides by the length of an empty text
            return np.nan_to_num(np.asarray(model.embed(list(texts), norm=True), np.float32))

    return embed


if __name__ == "__main__":
    main()

"""crawlguide train: fit the models that a guide uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawlguide.cli.common import app

models = typer.Typer(no_args_is_help=True)
app.add_typer(models, name="train", help="Fit a model: of risk, of the strategy tres, of the meaning of words.")
SeedOption = Annotated[int, typer.Option(help="One seed gives one model.")]


@models.command()
def risk(
    labelled: Annotated[Path, typer.Option(help="Parquet file: url, label (1: malicious), source.")],
    good: Annotated[list[Path] | None, typer.Option(help="More good URLs: .txt, or Parquet; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Where the model goes.")] = Path("risk.npz"),
    onnx: Annotated[Path | None, typer.Option(help="Where it goes as an ONNX file as well.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Fit the model of risk from labelled URLs and say what it is worth.

    Example: crawlguide train risk --labelled urls.parquet --good links.parquet --out risk.npz
    """
    import numpy as np

    from crawlguide.training import risk as training

    known = training.read(labelled, good or [], np.random.default_rng(seed))
    training.train(known, seed, out, onnx, typer.echo)


@models.command()
def tres(
    data: Annotated[Path, typer.Option(help="A data folder that no server has open, or a backup.")],
    out: Annotated[Path, typer.Option(help="Where the ONNX file goes.")],
    crawl: Annotated[list[str] | None, typer.Option(help="A crawl to learn from; repeatable; all by default.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Batches of 64 transitions.")] = 5_000,
    seed: SeedOption = 0,
) -> None:
    """Train the network of the strategy tres on what crawls have stored.

    Example: crawlguide train tres --data backup --crawl news --out news.onnx
    """
    from crawlguide.training.tres import train

    train(data, crawl or [], out, steps, seed, typer.echo)


@models.command()
def embedding(  # noqa: PLR0913, PLR0917 - every argument is an option of the command
    encoder: Annotated[Path, typer.Option(help="Folder of a sentence-transformers model.")],
    wordnet: Annotated[Path, typer.Option(help="Folder of WordNet 3.0 (data.noun and so on).")],
    out: Annotated[Path, typer.Option(help="Where the table goes.")] = Path("embedding.npz"),
    words: Annotated[int, typer.Option(min=0, help="Whole words beside the encoder's pieces.")] = 1_000,
    phrases: Annotated[int, typer.Option(min=1, help="Phrases of these words, and as many of WordNet's.")] = 400_000,
    dims: Annotated[int, typer.Option(min=1, help="Numbers in a vector.")] = 256,
    steps: Annotated[int, typer.Option(min=1, help="Gradient steps.")] = 2_000,
) -> None:
    """Distil a sentence encoder into the table of word pieces that judges meaning.

    Example: crawlguide train embedding --encoder MODEL --wordnet WORDNET --out embedding.npz
    """
    from crawlguide.training.embedding import Plan, train

    train(encoder, wordnet, out, Plan(words, phrases, dims, steps), typer.echo)

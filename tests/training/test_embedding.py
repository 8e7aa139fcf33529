"""How the table of word pieces is made: what is read, and that steps bring it nearer to its teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide.core.errors import ConfigError
from crawlguide.training import embedding

if TYPE_CHECKING:
    from pathlib import Path

LINES = """  1 This is a licence
00001740 03 n 02 entity 0 living_thing(p) 0 002 ~ 00001930 n 0000 ~ 00002137 n 0000 | that which is; "it was an entity"
00002000 06 n 0a a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 000 | ten letters
"""


def test_senses_are_read(tmp_path: Path) -> None:
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text(LINES if part == "noun" else "  1 licence\n")
    one, other = embedding.read_senses(tmp_path)
    assert one == embedding.Sense(["entity", "living thing"], "that which is")
    assert len(other.words) == 10
    assert embedding.texts([one]) == ["entity", "entity: that which is", "living thing", "that which is"]


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no data\.noun"):
        embedding.read_senses(tmp_path)


def test_numbers_and_marks_have_no_row() -> None:
    assert embedding.word_pieces_of(["[CLS]", "!", "the", "##ing", "1987", "##7", "3d", "é", "mp3"]) == [
        "the",
        "##ing",
        "3d",
        "mp3",
    ]


def test_words_of_the_trade(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"m{number}.py").write_text("def parseJson(): 'the regex'" + (" HTTPServer" if number else ""))
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "m.py").write_text("regex regex gherkin")
    assert embedding.technical({"the", "def"}, 9, tmp_path) == ["json", "parse", "regex", "http", "server"]
    assert embedding.technical({"the", "def"}, 1, tmp_path) == ["json"]


def test_phrases_are_the_same_for_one_seed() -> None:
    known = ["one", "two", "three"]
    assert embedding.phrases_of(known, 5, 0) == embedding.phrases_of(known, 5, 0) != embedding.phrases_of(known, 5, 1)
    assert all(2 <= len(phrase.split()) <= embedding.LONGEST_PHRASE for phrase in embedding.phrases_of(known, 99, 0))


def test_steps_bring_the_table_nearer_to_its_teacher() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra train")
    from crawlguide.training import embedding_distil

    torch.manual_seed(0)
    alone = torch.arange(20)
    phrases = torch.randint(20, (300, 2))
    bags = embedding_distil.Bags(torch.cat([alone, phrases.flatten()]), torch.cat([alone, 20 + 2 * torch.arange(301)]))
    truth = torch.randn(20, 12)
    vectors = torch.cat([truth, truth[phrases[:, 0]] + 2 * truth[phrases[:, 1]].abs()])
    lessons = embedding_distil.Lessons(bags, torch.nn.functional.normalize(vectors))

    def nearness(steps: int) -> float:
        options = embedding_distil.Options(dims=8, steps=steps, batch=64)
        table = embedding_distil.made(lessons, 15, 20, options)
        mean, axes = embedding_distil.axes(lessons.vectors, 8)
        wanted = torch.nn.functional.normalize((lessons.vectors - mean) @ axes)
        return float((embedding_distil.embedded(table, bags, torch.arange(len(bags))) * wanted).sum(1).mean())

    assert nearness(300) > nearness(0) + 0.05


def test_rounding_keeps_the_rows() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra train")
    from crawlguide.training import embedding_distil

    table = torch.randn(5, 16)
    bytes_, scale = embedding_distil.rounded(table)
    assert abs(bytes_ * scale[:, None] - table.numpy()).max() <= scale.max() / 2 + 1e-6

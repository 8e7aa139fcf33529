"""Pages in Chinese, Japanese, Russian and Arabic: anchors without spaces, addresses in percent signs or numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.texts import FIRST

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

HOSTS = 8
LINKS, ALIKE = 9, 0.6
SHOWN = 8  # pages on a home page
ON_TOPIC = 0.7  # of the words of a title
LANGUAGES = {  # words of topics, the first two name it; then words that all pages use; and what stands between words
    "zh": (
        "园艺 植物 土壤 种子 温室 花朵 果园 草坪 玫瑰 修剪 堆肥 树篱",
        "天文 星星 望远镜 星系 行星 彗星 日食 轨道 星云 流星 月球 光谱",
        "时间 世界 城市 故事 问题 报告 公司 历史 新的 重要 生活 朋友",
        "",
    ),
    "ja": (
        "鉄道 列車 駅 線路 時刻表 機関車 切符 路面電車 踏切 車両 信号 終点",
        "料理 パン 小麦粉 酵母 生地 オーブン バター 塩 砂糖 発酵 食パン 菓子",
        "時間 世界 都市 物語 問題 報告 会社 歴史 新しい 大切 生活 友達",
        "",
    ),
    "ru": (
        "шахматы дебюты пешка конь слон ладья ферзь рокировка гамбит эндшпиль мат турнир",
        "птицы миграция перо гнездо стая крыло сова ястреб цапля ласточка журавль зяблик",
        "время мир город история вопрос отчёт компания новый важный жизнь друг день",
        " ",
    ),
    "ar": (
        "طقس أمطار غيوم ضغط رطوبة رعد ثلوج جفاف ضباب عاصفة حرارة رياح",
        "سفن إبحار ميناء مرساة شراع موج بحر قارب ربان ملاحة بوصلة رصيف",
        "وقت عالم مدينة قصة سؤال تقرير شركة تاريخ جديد مهم حياة صديق",
        " ",
    ),
}


def draw(sketch: Sketch, pages: int) -> list[Task]:
    homes = [sketch.page(f"http://www.{FIRST[host]}-press.example/", "Welcome") for host in range(HOSTS)]
    about: dict[str, str] = {}  # the topic's words
    topics = [(words, common, gap) for *both, common, gap in LANGUAGES.values() for words in both]
    for number in range(pages):
        words, common, gap = sketch.random.choice(topics)
        title = _sentence(sketch, words, common, gap, 3)
        home = homes[number % HOSTS]
        where = f"{home}{title.replace(' ', '-')}-{number}" if number % HOSTS % 2 else f"{home}p/{number}"
        text = "。 ".join(_sentence(sketch, words, common, gap, 9) for _ in range(12))
        about[sketch.page(where, title, text=text)] = words
    for page, words in about.items():
        alike = [other for other, its in about.items() if its == words and other != page]
        for _ in range(LINKS):
            sketch.link(page, sketch.random.choice(alike if sketch.random.random() < ALIKE else list(about)))
    for home in homes:
        for page in sketch.some([page for page in about if page.startswith(home)], SHOWN):
            sketch.link(home, page)
    return [_task(sketch, homes, words, about) for words in dict.fromkeys(words for words, _, _ in topics)]


def _sentence(sketch: Sketch, words: str, common: str, gap: str, count: int) -> str:
    sources = [words if sketch.random.random() < ON_TOPIC else common for _ in range(count)]
    return gap.join(sketch.random.choice(source.split()) for source in sources)


def _task(sketch: Sketch, homes: list[str], words: str, about: dict[str, str]) -> Task:
    """Looked for by the two words that name it."""
    return sketch.task(" ".join(words.split()[:2]), homes, [page for page, its in about.items() if its == words])

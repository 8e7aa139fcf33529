"""Configuration: flags over environment over file, and a typo is refused with the nearest known key."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlguide.core import config
from crawlguide.core.config import Config
from crawlguide.core.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crawlguide.toml"
    path.write_text("[server]\nport = 1111\nhost = 'from.file'\n\n[guide]\nfilters = ['seen', 'budget']\n")
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "crawlguide.toml"
    path.write_text(text)
    return path


def refusal(path: Path | None = None, environment: dict[str, str] | None = None, **flags: object) -> str:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    with pytest.raises(ConfigError) as refused:
        config.load(path, environment, dotted)
    return refused.value.message


def test_defaults_load_without_anything() -> None:
    assert config.load() == Config()


def test_the_file_is_over_the_defaults(file: Path) -> None:
    loaded = config.load(file)
    assert (loaded.server.port, loaded.server.host) == (1111, "from.file")


def test_what_the_file_leaves_out_keeps_its_default(file: Path) -> None:
    assert config.load(file).server.keep_alive_s == Config().server.keep_alive_s


def test_the_environment_is_over_the_file(file: Path) -> None:
    loaded = config.load(file, {"CRAWLGUIDE_SERVER_PORT": "2222"})
    assert (loaded.server.port, loaded.server.host) == (2222, "from.file")


def test_flags_are_over_the_environment(file: Path) -> None:
    loaded = config.load(file, {"CRAWLGUIDE_SERVER_PORT": "2222"}, {"server.port": 3333})
    assert loaded.server.port == 3333


def test_a_flag_that_was_not_given_changes_nothing(file: Path) -> None:
    assert config.load(file, {}, {"server.port": None}).server.port == 1111


def test_variables_of_others_are_left_alone() -> None:
    assert config.load(None, {"PATH": "/bin", "HOME": "/root", "CRAWLGUIDE": "x"}) == Config()


def test_the_variable_that_names_the_file_is_no_key() -> None:
    assert config.load(None, {"CRAWLGUIDE_CONFIG": "/etc/crawlguide.toml"}) == Config()


def test_a_list_is_read_from_the_environment() -> None:
    loaded = config.load(None, {"CRAWLGUIDE_GUIDE_FILTERS": "seen, budget"})
    assert loaded.guide.filters == ("seen", "budget")


def test_a_list_is_read_from_the_file(file: Path) -> None:
    assert config.load(file).guide.filters == ("seen", "budget")


@pytest.mark.parametrize(("text", "value"), [("false", False), ("true", True), ("0", False), ("1", True)])
def test_a_switch_is_read_from_the_environment(text: str, value: bool) -> None:
    assert config.load(None, {"CRAWLGUIDE_CRAWLS_AUTO_CREATE": text}).crawls.auto_create is value


def test_a_fraction_is_read_from_the_environment() -> None:
    assert config.load(None, {"CRAWLGUIDE_GUIDE_SLOW_MS": "12.5"}).guide.slow_ms == 12.5


def test_an_unknown_key_in_the_file_is_refused_with_key_file_and_nearest(tmp_path: Path) -> None:
    path = written(tmp_path, "[server]\nprot = 8080\n")
    assert refusal(path) == f"{path}: unknown key 'server.prot'; did you mean 'server.port'?"


def test_an_unknown_section_in_the_file_is_refused_with_key_file_and_nearest(tmp_path: Path) -> None:
    path = written(tmp_path, "[sever]\nport = 8080\n")
    assert refusal(path) == f"{path}: unknown key 'sever.port'; did you mean 'server.port'?"


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("port = 8080", "port", "server.port"),
        ("prot = 8080", "prot", "server.port"),
        ("[guide]\nport = 8080", "guide.port", "server.port"),
        ("servr = 8080", "servr", "server"),
    ],
)
def test_an_option_outside_its_section_is_refused_with_its_section(
    tmp_path: Path, text: str, key: str, meant: str
) -> None:
    path = written(tmp_path, text)
    assert refusal(path) == f"{path}: unknown key {key!r}; did you mean {meant!r}?"


def test_an_empty_unknown_section_is_refused_too(tmp_path: Path) -> None:
    path = written(tmp_path, "[sever]\n")
    assert refusal(path).startswith(f"{path}: unknown key 'sever'")


def test_an_unknown_variable_is_refused_with_the_nearest() -> None:
    told = refusal(None, {"CRAWLGUIDE_SERVER_PROT": "8080"})
    assert told == ("the environment: unknown key 'CRAWLGUIDE_SERVER_PROT'; did you mean 'CRAWLGUIDE_SERVER_PORT'?")


def test_an_unknown_flag_is_refused_with_the_nearest() -> None:
    told = refusal(server__prot=8080)
    assert "unknown key 'server.prot'" in told
    assert "did you mean 'server.port'?" in told


def test_a_key_like_no_other_is_refused_without_a_guess() -> None:
    assert "did you mean" not in refusal(qqqq__zzzz=1)


def test_a_wrong_type_in_the_file_is_refused_with_file_key_and_what_came(tmp_path: Path) -> None:
    path = written(tmp_path, "[server]\nport = [1]\n")
    told = refusal(path)
    assert told.startswith(f"{path}: server.port: ")
    assert told.endswith("got [1]")


def test_a_wrong_type_in_the_environment_is_refused_with_variable_key_and_what_came() -> None:
    told = refusal(None, {"CRAWLGUIDE_SERVER_PORT": "many"})
    assert told.startswith("environment variable CRAWLGUIDE_SERVER_PORT: server.port: ")
    assert told.endswith("got 'many'")


def test_a_value_out_of_range_is_refused_with_key_and_what_came(tmp_path: Path) -> None:
    path = written(tmp_path, "[server]\nport = 70000\n")
    told = refusal(path)
    assert told.startswith(f"{path}: server.port: ")
    assert "65535" in told
    assert told.endswith("got 70000")


def test_a_flag_out_of_range_is_refused_with_key_and_what_came() -> None:
    told = refusal(server__port=-1)
    assert "server.port" in told
    assert told.endswith("got -1")


def test_a_number_where_a_switch_belongs_is_refused(tmp_path: Path) -> None:
    assert "crawls.auto_create" in refusal(written(tmp_path, "[crawls]\nauto_create = 7\n"))


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.toml"
    assert refusal(path).startswith(f"{path}: no such file")


def test_broken_toml_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "[server\nport = 1\n")
    assert refusal(path).startswith(f"{path}: not TOML: ")


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "crawlguide.toml"
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal(path).startswith(f"{path}: not TOML: ")


def test_a_folder_in_place_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    assert str(tmp_path) in refusal(tmp_path)


def test_every_key_can_be_set_to_its_own_default() -> None:
    defaults = {key: default for key, (_, default) in config.keys().items()}
    flags = {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()}
    assert config.load(None, {}, flags) == Config()


def test_a_configuration_cannot_be_changed_once_loaded() -> None:
    with pytest.raises(AttributeError):
        Config().server.port = 1  # type: ignore[misc]

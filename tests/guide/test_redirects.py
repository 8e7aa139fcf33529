"""After a redirect the content belongs to the target."""

from __future__ import annotations

import numpy as np

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.types import Crawl
from tests.guide.common import UNPACED, A
from tests.support import asked, fetched, state_of, store_of, tell


def test_after_a_redirect_both_urls_are_done(guide: Guide) -> None:
    tell(guide, fetched(A, redirected_to="https://b.org/"))
    assert (state_of(guide, A), state_of(guide, "https://b.org/")) == ("done", "done")


def test_a_redirect_is_read_from_the_url_that_was_fetched(guide: Guide) -> None:
    tell(guide, fetched(A + "old", redirected_to="/new"))
    assert state_of(guide, A + "new") == "done"


def test_the_target_of_a_redirect_is_not_given_any_more(unpaced: Guide) -> None:
    unpaced.seed("default", [A, A + "target"])
    tell(unpaced, fetched(A, redirected_to=A + "target"))
    assert asked(unpaced) == []


def test_links_found_after_a_redirect_belong_to_the_target(guide: Guide) -> None:
    tell(guide, fetched(A, A + "link", redirected_to="https://b.org/"))
    child = np.array([urls.identity(A + "link")], np.uint64)
    parents = guide._run(store_of(guide).parents(Crawl("default", "default"), child)).parent
    assert parents.tolist() == [urls.identity("https://b.org/")]


def test_relative_links_found_after_a_redirect_are_read_from_the_target(guide: Guide) -> None:
    tell(guide, fetched(A, "x", redirected_to="https://b.org/dir/"))
    assert state_of(guide, "https://b.org/dir/x") == "queued"


def test_a_redirect_does_not_bring_a_page_nearer_to_the_seed(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_depth": 1}})
    guide.seed("default", [A])
    tell(guide, fetched(A, A + "1"))
    tell(guide, fetched(A + "1", A + "2", redirected_to=A + "moved"))
    assert state_of(guide, A + "2") == "dropped"


def test_a_seed_that_redirects_keeps_its_bound_on_depth(guide: Guide) -> None:
    guide.seed("default", [{"url": A, "max_depth": 0}])
    tell(guide, fetched(A, A + "1", redirected_to="https://www.a.org/"))
    assert state_of(guide, A + "1") == "dropped"

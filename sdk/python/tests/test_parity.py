"""Whoever has an event loop has the same, and the README names it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import minerva
import minerva.aio

# What a program does on a thread of its own has no second form.
WITHOUT_A_LOOP = {"cache", "deferred", "tag_ioprio", "tagged"}
FUNCTIONS = {name for name in minerva.__all__ if name.islower()}


def shown(function: object) -> str:
    """What it takes and gives, whether or not it is awaited."""
    assert callable(function)
    return str(inspect.signature(function)).replace("AsyncIterator", "Iterator").replace("_Credits", "Credits")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_have_the_same_functions() -> None:
    assert FUNCTIONS - WITHOUT_A_LOOP == {name for name in minerva.aio.__all__ if name.islower()}
    for name in FUNCTIONS - WITHOUT_A_LOOP:
        assert shown(getattr(minerva, name)) == shown(getattr(minerva.aio, name)), name
    found = {name for name, one in vars(minerva).items() if inspect.isfunction(one) and not name.startswith("_")}
    assert found == FUNCTIONS - {"cache"}


@pytest.mark.parametrize("kind", ["Client", "Coordinated", "Debt", "Held", "Job"])
def test_both_have_the_same_methods(kind: str) -> None:
    one, other = getattr(minerva, kind), getattr(minerva.aio, kind)
    assert public(one) == public(other) != set()
    for name in [*public(one), "__init__"]:
        method, same = getattr(one, name), getattr(other, name)
        assert isinstance(method, property) == isinstance(same, property), name
        if not isinstance(method, property):
            assert shown(method) == shown(same), name


def test_the_readme_names_what_a_client_has_beyond_the_functions() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    sentence = readme[readme.index("It also\nhas") :].partition(".")[0]
    named = {word for word in sentence.split("`") if word.isidentifier()}
    assert {name for name in named if name in public(minerva.Client)} == public(minerva.Client) - FUNCTIONS
    # `connect` makes one, and the rest asks no server.
    assert FUNCTIONS - public(minerva.Client) == WITHOUT_A_LOOP | {"connect"}

"""Sampled functions are matched with those of the source by their names."""

import pytest

from redline.model import TouchedFunction
from redline.profiles.touched import touched_among


def touched(name: str, within: str = "", file: str = "src/serve.x") -> TouchedFunction:
    return TouchedFunction(name=name, within=within, file=file)


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("seldom", "seldom"),
        ("api::Server<int>::answer(Request const&)", "answer"),
        ("serde_json::ser::to_string", "to_string"),
        ("<serve::Api as tower::Service<B>>::call", "call"),
        ("serve::Api::call::{{closure}}", "call"),
        ("main.(*conn).serve", "serve"),
        ("main.(*conn).serve.func1", "serve"),
        ("petstore.Api.answer", "answer"),
        ("petstore.Api.lambda$answer$0", "answer"),
        ("JS:handler /srv/app.js:10:5", "handler"),
        ("py::handler:/srv/app.py", "handler"),
        ("app.handler", "handler"),
    ],
)
def test_the_function_of_a_frame(frame: str, name: str) -> None:
    others = {"often", "serve::other", f"{name}_more"}
    assert touched_among({frame, *others}, [touched(name)]) == {frame}


def test_a_class_or_a_file_tells_functions_of_the_same_name_apart() -> None:
    frames = {"petstore.Api.get", "java.util.HashMap.get", "serve.get", "other.get"}
    assert touched_among(frames, [touched("get", "Api")]) == {"petstore.Api.get"}
    assert touched_among(frames, [touched("get", "Unknown", "src/serve.py")]) == {"serve.get"}
    assert touched_among(frames, [touched("get", "Unknown", "src/unknown.py")]) == frames


def test_functions_of_the_kernel_are_none_of_the_range() -> None:
    assert touched_among({"write_[k]"}, [touched("write")]) == frozenset()

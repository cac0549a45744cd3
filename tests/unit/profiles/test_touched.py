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
        ("(anonymous namespace)::inner(int)", "inner"),
        ("bool (anonymous namespace)::inner(int)", "inner"),
        ("void answer<int>(int)", "answer"),
        ("unsigned long answer<int, long>(int)", "answer"),
        ("Router<long, int>::answer(std::map<int, int> const&) const", "answer"),
        ("api::answer(int)::{lambda(int)#1}::operator()(int) const", "answer"),
        ("api::Server::~Server()", "~Server"),
        ("<api::Server as core::ops::Fn(i32) -> u8>::answer", "answer"),
        ("api::Filter::apply", "apply"),
        ("api::answer::{async_block#0}", "answer"),
        ("petstore.Api.apply", "apply"),
        ("petstore.Api$$anonfun$answer$1.apply", "answer"),
        ("petstore.Api.$anonfun$answer$1", "answer"),
        ("petstore.Api.impl", "impl"),
        ("petstore.Api.<init>", "Api"),
        ("main.Map[go.shape.int]", "Map"),
        ("main.(*conn[go.shape.[]uint8]).answer-fm", "answer"),
        ("main.(*conn).answer.func1.2", "answer"),
        ("main.answer.gowrap1", "answer"),
        ("main.answer-range1", "answer"),
        ("api.Server.answer.<locals>.<lambda>", "answer"),
        ("Server.answer (x.py)", "answer"),
        ("block in Server#answer", "answer"),
        ("instance void [app] Api.Server::Answer(class Request,int32)[Tier1]", "Answer"),
    ],
)
def test_the_function_of_a_frame(frame: str, name: str) -> None:
    others = {"often", "serve::other", f"{name}_more"}
    assert touched_among({frame, *others}, [touched(name)]) == {frame}


@pytest.mark.parametrize(
    "frame", ["<module> (x.py)", "py::<module>:/srv/x.py", "JS: /srv/x.py:1:1", "petstore.Api$$Lambda.apply", "[x.so]"]
)
def test_frames_without_the_name_of_a_function(frame: str) -> None:
    names = ("x", "py", "module", "srv", "Api", "Lambda", "Api$$Lambda", "apply", "so")
    assert touched_among({frame}, [touched(name) for name in names]) == frozenset()


def test_a_class_or_a_file_tells_functions_of_the_same_name_apart() -> None:
    frames = {"petstore.Api.get", "java.util.HashMap.get", "serve.get", "other.get"}
    assert touched_among(frames, [touched("get", "Api")]) == {"petstore.Api.get"}
    assert touched_among(frames, [touched("get", "Unknown", "src/serve.py")]) == {"serve.get"}
    assert touched_among(frames, [touched("get", "Unknown", "src/unknown.py")]) == frames


def test_functions_of_the_kernel_are_none_of_the_range() -> None:
    assert touched_among({"write_[k]"}, [touched("write")]) == frozenset()

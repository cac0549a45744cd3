"""What flags ask for, by the fields of the flags."""

from typing import Any

from redline.asking.asks import ComparisonAsk, LoadAsk, SearchAsk, SuiteAsk
from redline.cli.asks import comparison_ask, load_ask, search_ask, suite_ask
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags, SuiteFlags


def load(**flags: Any) -> LoadAsk:
    return load_ask(LoadFlags(**flags))


def comparison(**flags: Any) -> ComparisonAsk:
    return comparison_ask(AbFlags(**flags))


def search(**flags: Any) -> SearchAsk:
    return search_ask(LimitFlags(**flags))


def of_suite(**flags: Any) -> SuiteAsk:
    return suite_ask(SuiteFlags(**flags))

"""YAML -> validated Suite -> Plan, and the catalogue that a suite is resolved against."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.schema.objectives import parse_objectives
    from redline.schema.suite import DETECTION_NS
    from redline.suite.catalogue import Catalogue
    from redline.suite.extending import affordable, with_budget, with_further_starts, with_rounds
    from redline.suite.loading import (
        load_catalogue,
        load_libraries,
        load_suite,
        opened_requests,
        read_body,
        read_data,
        read_text,
        referenced_files,
    )
    from redline.suite.planning import (
        ALL_AVAILABLE,
        SHORTEST_PROBE_NS,
        Capacities,
        cannot_profile,
        capacity_loads,
        capacity_slug,
        draw_places,
        expected_length_ns,
        expected_starts_ns,
        expected_trial_ns,
        least_length_ns,
        make_capacity_plan,
        make_plan,
        make_search_plan,
        to_search,
        without_profiles,
    )
    from redline.suite.validate.overrides import Overrides
    from redline.suite.validate.referenced_files import read_entries, read_replay
    from redline.suite.validate.resolve import read_suite, suite_of
else:
    __getattr__ = offered(__name__)

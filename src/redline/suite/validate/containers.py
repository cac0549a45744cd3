"""Where the servers and proxies of a suite run. Pure."""

from redline.model import Container
from redline.suite.schema.container import ContainerSchema, PlacedSchema
from redline.suite.schema.document import Path
from redline.suite.validate.checking import Sheet


def places_of(sheet: Sheet, path: Path, written: PlacedSchema, *, hop: bool = False) -> list[Container | None]:
    """Where an item of `servers`, or a hop, runs: None for a process. Note what is wrong."""
    is_axis = isinstance(sheet.document.at((*path, "in")), list) if "places" in written.model_fields_set else False
    settings = written.container or ContainerSchema()
    if written.container is not None and "container" not in written.places:
        sheet.wrong((*path, "container"), "this runs in no container", "add `in: container`", key=True)
    if hop and is_axis:
        sheet.wrong((*path, "in"), "a hop runs in one place", "write another route for the other place")
    if hop and settings.network == "published":
        message = "a proxy reaches what is behind it through the network of the machine"
        sheet.wrong((*path, "container", "network"), message, "remove `network`")
    for index, place in enumerate(written.places):
        if place in written.places[:index]:
            sheet.wrong((*path, "in", index), f"`{place}` is given twice", "remove one")
    return [settings.container() if place == "container" else None for place in written.places]

"""Elements of a file of SVG 1.1. Every text is escaped, and `visible`."""

from xml.etree import ElementTree as ET

from redline.visible import visible

WIDTH = 900
CHARACTER = 6.6
"""The width of a character of ordinary text, about."""
INK, MUTED, GRID, SHADE = "#17191e", "#575d68", "#eceded", "#f0efeb"


def new_picture(title: str, subtitle: str, height: int) -> ET.Element:
    """A white picture with its title, and what is below that in small."""
    box = f"0 0 {WIDTH} {height}"
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(WIDTH), height=str(height), viewBox=box)
    svg.set("font-family", "system-ui, sans-serif")
    svg.set("font-size", "12")
    ET.SubElement(svg, "title").text = visible(f"{title}: {subtitle}" if subtitle else title)
    add(svg, "rect", width=WIDTH, height=height, fill="#ffffff")
    add_text(svg, 16, 22, title, fill=INK, font_size=15, font_weight=600)
    add_text(svg, 16, 39, subtitle, fill=MUTED)
    return svg


def as_file(svg: ET.Element) -> bytes:
    """The content of the file."""
    content: bytes = ET.tostring(svg, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def add(parent: ET.Element, tag: str, **attributes: object) -> ET.Element:
    """Add an element; `_` in names of attributes becomes `-`."""
    return ET.SubElement(parent, tag, {name.replace("_", "-"): str(value) for name, value in attributes.items()})


def add_text(parent: ET.Element, x: float, y: float, content: str, **attributes: object) -> None:
    """Add a text whose baseline begins there."""
    add(parent, "text", x=round(x, 2), y=round(y, 2), **attributes).text = visible(content)

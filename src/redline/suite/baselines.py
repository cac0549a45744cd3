"""Which server each one is compared with: the suite's `baseline`, resolved to slugs. Pure."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from redline.model import Variant
from redline.suite.catalogue import Catalogue, is_among
from redline.suite.checking import Sheet
from redline.suite.document import Path
from redline.suite.units import clip, did_you_mean

_WHERE: Path = ("baseline",)
_MAPPING_HINT = "or say which is compared with which: `baseline: {rust.axum: rust.hyper}`"


def read_baselines(sheet: Sheet, catalogue: Catalogue, variants: list[Variant]) -> tuple[str | None, dict[str, str]]:
    """The slug that all are compared with, and by slug those of servers that have a baseline of their own.

    Nothing of it counts when a problem was noted.
    """
    written = sheet.document.at(_WHERE)
    if isinstance(written, str):
        return _one(sheet, catalogue, variants, written)
    if not isinstance(written, dict) or not variants:
        return None, {}
    return None, _of_each(sheet, catalogue, variants, {str(key): value for key, value in written.items()})


def partners(variant: Variant, among: Iterable[Variant]) -> list[Variant]:
    """Those spoken to in the same way, with the same value of every option that they share with the variant."""
    return [other for other in among if _spoken(other) == _spoken(variant) and _agree(variant, other)]


def _spoken(variant: Variant) -> tuple[object, ...]:
    """What of its protocol decides a measurement; its certificate's name and signer do not."""
    return variant.http, variant.tls and (variant.tls.versions, variant.tls.resumption)


def _agree(one: Variant, other: Variant) -> bool:
    shared = one.options.keys() & other.options.keys()
    return all(is_among(one.options[name], (other.options[name],)) for name in shared)


def _one(sheet: Sheet, catalogue: Catalogue, variants: list[Variant], named: str) -> tuple[str | None, dict[str, str]]:
    """A server, whose only variant it is, or each for those with its options; or a variant by its slug.

    The name of a server is the slug of its variant with all defaults too. That one is meant for all where it is the
    only variant, or where not every variant of another server finds its own partner.
    """
    slugs = [variant.slug for variant in variants]
    candidates = [variant for variant in variants if variant.entry.name == named]
    if len(candidates) == 1:
        return candidates[0].slug, {}
    if not candidates and named in slugs:
        return named, {}
    if not candidates:
        _unknown(sheet, _WHERE, catalogue, variants, named)
        return None, {}
    found = {variant.slug: partners(variant, candidates) for variant in variants if variant.entry.name != named}
    if found and all(len(several) == 1 for several in found.values()):
        return None, {slug: partner.slug for slug, (partner,) in found.items()}
    if named in slugs:
        return named, {}
    hint = f"choose one of: {', '.join(variant.slug for variant in candidates)}; {_MAPPING_HINT}"
    sheet.wrong(_WHERE, f"`{named}` stands for {len(candidates)} servers of this suite", hint)
    return None, {}


def _of_each(sheet: Sheet, catalogue: Catalogue, variants: list[Variant], written: dict[str, object]) -> dict[str, str]:
    """The baseline of each variant, by the first key that matches it."""
    found: dict[str, str] = {}
    keys: dict[str, Path] = {}
    for glob, named in written.items():
        path: Path = (*_WHERE, glob)
        candidates = _candidates(variants, named) if isinstance(named, str) else []
        matched = _matched(sheet, path, variants, glob)
        if not candidates and isinstance(named, str):
            _unknown(sheet, path, catalogue, variants, named)
        for variant in matched if candidates else []:
            if variant.slug in found or (_is_glob(glob) and variant in candidates):
                continue  # an earlier key has it, or the glob takes in the baseline itself
            keys[variant.slug] = path
            partner = _partner(sheet, path, variant, candidates, str(named))
            if partner is not None:
                found[variant.slug] = partner.slug
    _no_chains(sheet, found, keys)
    return found


def _candidates(variants: list[Variant], named: str) -> list[Variant]:
    """Every variant of a server; or the one variant of a slug that is no server's name."""
    of_that_server = [variant for variant in variants if variant.entry.name == named]
    return of_that_server or [variant for variant in variants if variant.slug == named]


def _matched(sheet: Sheet, path: Path, variants: list[Variant], glob: str) -> list[Variant]:
    matched = [v for v in variants if fnmatchcase(v.slug, glob) or fnmatchcase(v.entry.name, glob)]
    if not matched and sheet.is_sound(("servers",)):
        slugs = tuple(variant.slug for variant in variants)
        hint = did_you_mean(glob, slugs) or f"this suite has: {', '.join(slugs)}"
        sheet.wrong(path, f"no server of this suite matches `{clip(glob)}`", hint, key=True)
    return matched


def _is_glob(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _partner(sheet: Sheet, path: Path, variant: Variant, candidates: list[Variant], named: str) -> Variant | None:
    """The one to compare with; None after noting that there is none, or more than one."""
    if variant in candidates:
        hint = "remove it: what an option costs is told without a baseline"
        sheet.wrong(path, f"`{variant.slug}` would be compared with itself", hint)
        return None
    if candidates[0].entry.name != named:
        return candidates[0]  # named by its slug: that one, whatever its options are
    fitting = partners(variant, candidates)
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(other.slug for other in fitting or candidates)
    if fitting:
        message = f"`{variant.slug}` could be compared with {len(fitting)} variants of `{named}`"
        sheet.wrong(path, message, f"choose one of: {there}")
    elif sheet.is_sound(("servers",)):
        message = f"`{named}` has no variant with the options of `{variant.slug}`"
        sheet.wrong(path, message, f"give both the same options in `servers`, or name one of: {there}")
    return None


def _no_chains(sheet: Sheet, found: dict[str, str], keys: dict[str, Path]) -> None:
    """What is compared with another cannot be what others are compared with: it would stand in two groups."""
    told: set[Path] = set()
    for slug, baseline in found.items():
        if baseline in found and keys[slug] not in told:
            told.add(keys[slug])
            message = f"`{baseline}` is the baseline of `{slug}` and has one itself: `{found[baseline]}`"
            sheet.wrong(keys[slug], message, f"name `{found[baseline]}` here too")


def _unknown(sheet: Sheet, path: Path, catalogue: Catalogue, variants: list[Variant], named: str) -> None:
    if not sheet.is_sound(("servers",)):
        return  # what is wrong there is told, and the server may be meant
    if named in catalogue.servers:
        sheet.wrong(path, f"`{named}` is not among the servers of this suite", "add it to `servers`")
        return
    slugs = tuple(variant.slug for variant in variants)
    hint = did_you_mean(named, slugs) or f"this suite has: {', '.join(slugs)}"
    sheet.wrong(path, f"there is no server `{clip(named)}` in this suite", hint)

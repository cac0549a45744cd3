"""Resolve the suite's `baseline` to slugs: the baseline of every server. Pure."""

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

from redline.model import Variant
from redline.model.catalogue import is_among, slug_text
from redline.quantities import clip
from redline.schema.document import Path
from redline.suite.catalogue import Catalogue
from redline.suite.validate.checking import Sheet, suggest

_WHERE: Path = ("baseline",)
_MAPPING_HINT = "or say which is compared with which: `baseline: {rust.axum: rust.hyper}`"


def read_baselines(sheet: Sheet, catalogue: Catalogue, variants: list[Variant]) -> tuple[str | None, dict[str, str]]:
    """The slug of the common baseline, or the baselines by server slug. The result is meaningless after a problem."""
    written = sheet.document.at(_WHERE)
    if isinstance(written, str):
        return _single(sheet, catalogue, variants, _as_slug(variants, written))
    if not isinstance(written, dict) or not variants:
        return None, {}
    return None, _mapped(sheet, catalogue, variants, {str(key): value for key, value in written.items()})


def _as_slug(variants: list[Variant], named: str) -> str:
    """The slug of the variant that is named with its options in another order, or with defaults; else `named`."""
    name, *parts = named.split("+")
    for variant in variants:
        own, *differing = variant.slug.split("+")
        if own == name and parts and not Counter(differing) - Counter(parts):
            defaults = {f"{option}={slug_text(value)}" for option, value in variant.options.items()}
            if set(Counter(parts) - Counter(differing)) <= defaults:
                return variant.slug
    return named


def partners(variant: Variant, among: Iterable[Variant]) -> list[Variant]:
    """Variants with the same route, protocol, container and flags, and the same value of every common option.

    Flags count only if both run on a JVM.
    """
    alike = [other for other in among if other.container == variant.container and _agree(variant, other)]
    return [other for other in alike if _protocol(other) == _protocol(variant)]


def _protocol(variant: Variant) -> tuple[object, ...]:
    """The part of its route and protocol that affects a measurement, without a certificate's name and signer."""
    return variant.route_name, variant.http, variant.tls and (variant.tls.versions, variant.tls.resumption)


def _agree(variant: Variant, other: Variant) -> bool:
    shared = variant.options.keys() & other.options.keys()
    if variant.runtime == other.runtime == "jvm" and variant.flags != other.flags:
        return False
    return all(is_among(variant.options[name], (other.options[name],)) for name in shared)


def _single(
    sheet: Sheet, catalogue: Catalogue, variants: list[Variant], named: str
) -> tuple[str | None, dict[str, str]]:
    """Resolve a single name: a server, whose variants are baselines for equal options, or a variant's slug, for all."""
    slugs = [variant.slug for variant in variants]
    candidates = [variant for variant in variants if variant.entry.name == named]
    if len(candidates) == 1:
        return candidates[0].slug, {}
    if not candidates and named in slugs:
        return named, {}
    if not candidates:
        _unknown(sheet, _WHERE, catalogue, variants, named)
        return None, {}
    # The name is also the slug of the variant with all defaults. It means that variant if some variant has no partner.
    by_slug = {variant.slug: partners(variant, candidates) for variant in variants if variant.entry.name != named}
    if by_slug and all(len(several) == 1 for several in by_slug.values()):
        return None, {slug: partner.slug for slug, (partner,) in by_slug.items()}
    if named in slugs:
        return named, {}
    hint = f"choose one of: {', '.join(variant.slug for variant in candidates)}; {_MAPPING_HINT}"
    sheet.wrong(_WHERE, f"`{named}` matches {len(candidates)} servers of this suite", hint)
    return None, {}


def _mapped(sheet: Sheet, catalogue: Catalogue, variants: list[Variant], written: dict[str, object]) -> dict[str, str]:
    """The baselines of variants, by the first key that matches; slugs with options take precedence."""
    baselines: dict[str, str] = {}
    keys: dict[str, Path] = {}
    exact = {variant.slug for variant in variants if variant.slug != variant.entry.name}
    for key, named in sorted(written.items(), key=lambda item: _as_slug(variants, item[0]) not in exact):
        path: Path = (*_WHERE, key)
        glob = _as_slug(variants, key)
        matched = _matched(sheet, path, variants, glob)
        if not isinstance(named, str):
            continue
        value = _as_slug(variants, named)
        candidates = _candidates(variants, value)
        if not candidates:
            _unknown(sheet, path, catalogue, variants, value)
        for variant in matched if candidates else []:
            if variant.slug in baselines or _passes_over(glob, variant, matched, candidates):
                continue
            keys[variant.slug] = path
            own = variant in candidates
            others = [candidate for candidate in candidates if candidate not in matched] if own else candidates
            partner = _partner(sheet, path, (glob, value), variant, others, own=own)
            if partner is not None:
                baselines[variant.slug] = partner.slug
    _no_circles(sheet, baselines, keys)
    return baselines


def _candidates(variants: list[Variant], named: str) -> list[Variant]:
    """Every variant of a server, or the variant with a slug that is not a server's name."""
    of_that_server = [variant for variant in variants if variant.entry.name == named]
    return of_that_server or [variant for variant in variants if variant.slug == named]


def _matched(sheet: Sheet, path: Path, variants: list[Variant], glob: str) -> list[Variant]:
    matched = [v for v in variants if fnmatchcase(v.slug, glob) or fnmatchcase(v.entry.name, glob)]
    if not matched and sheet.is_sound(("servers",)):
        hint = suggest(glob, (variant.slug for variant in variants), "this suite has")
        sheet.wrong(path, f"no server of this suite matches `{clip(glob)}`", hint, key=True)
    return matched


def _passes_over(key: str, variant: Variant, matched: list[Variant], candidates: list[Variant]) -> bool:
    """Whether to skip the baseline itself, if a key for other variants also matches it.

    A glob for some variants of a server, with that server as the value, compares them with the unmatched variants.
    """
    if variant not in candidates:
        return False
    is_glob = any(sign in key for sign in "*?[")
    return any(other not in candidates for other in matched) or (
        is_glob and all(candidate in matched for candidate in candidates)
    )


def _partner(  # noqa: PLR0913 - a key and its value, of what, and among what
    sheet: Sheet, path: Path, written: tuple[str, str], variant: Variant, others: list[Variant], *, own: bool
) -> Variant | None:
    """The baseline of a variant, by a key and its value; None after noting that no variant fits, or several.

    `own`: the value names the variant too. If both are named by their slugs, they are compared whatever their options
    and protocols are.
    """
    key, named = written
    exact = next((other for other in others if named == other.slug), None)
    if exact is not None and (named != exact.entry.name or (key == variant.slug and own)):
        return exact
    fitting = _one_change(variant, others) if own else partners(variant, others)
    if len(fitting) == 1:
        return fitting[0]
    if exact is not None and key == variant.slug:
        return exact
    _unclear(sheet, path, variant, others, fitting)
    return None


def _one_change(variant: Variant, among: Iterable[Variant]) -> list[Variant]:
    """Variants that differ in a single option, or only in flags, only in place, or only in route and protocol."""
    return [other for other in among if _changes(variant, other) == 1]


def _changes(variant: Variant, other: Variant) -> int:
    options = sum(not is_among(value, (other.options[name],)) for name, value in variant.options.items())
    places = (variant.container != other.container) + (variant.flags != other.flags)
    return options + (_protocol(variant) != _protocol(other)) + places


def _unclear(sheet: Sheet, path: Path, variant: Variant, others: list[Variant], fitting: list[Variant]) -> None:
    """Note why a variant has no partner: it would be its own, several variants fit, or no variant fits."""
    named, there = sheet.document.at(path), ", ".join(other.slug for other in fitting or others)
    by_slugs = f", with `{variant.slug}` as the key" if any(other.slug == named for other in fitting or others) else ""
    if not others:
        hint = "remove it: the report shows the cost of an option without a baseline"
        sheet.wrong(path, f"`{variant.slug}` would be compared with itself", hint)
    elif fitting:
        message = f"`{variant.slug}` could be compared with {len(fitting)} variants of `{named}`"
        sheet.wrong(path, message, f"choose one of: {there}{by_slugs}")
    elif not sheet.is_sound(("servers",)):
        return
    elif variant.entry.name == named:
        message = f"no variant of `{named}` differs from `{variant.slug}` in a single property"
        sheet.wrong(path, message, f"name one of: {there}{by_slugs}")
    else:
        message = f"`{named}` has no variant with the options of `{variant.slug}`"
        fitting = [other for other in others if _agree(variant, other)]
        if fitting:
            differs = "protocol" if any(other.route == variant.route for other in fitting) else "route"
            message = f"`{named}` has no variant with the {differs} of `{variant.slug}`"
        sheet.wrong(path, message, f"give both the same options in `servers`, or name one of: {there}{by_slugs}")


def _no_circles(sheet: Sheet, baselines: dict[str, str], keys: dict[str, Path]) -> None:
    """Note circular chains of baselines."""
    seen: set[str] = set()
    for slug in baselines:
        chain = [slug]
        while chain[-1] in baselines and baselines[chain[-1]] not in chain:
            chain.append(baselines[chain[-1]])
        if baselines.get(chain[-1]) == slug and seen.isdisjoint(chain):
            seen.update(chain)
            circle = " -> ".join([*chain, slug])
            hint = "a chain begins with a server without a baseline: remove one of these keys"
            sheet.wrong(keys[slug], f"these baselines form a circle: {circle}", hint)


def _unknown(sheet: Sheet, path: Path, catalogue: Catalogue, variants: list[Variant], named: str) -> None:
    if not sheet.is_sound(("servers",)):
        return  # a wrong entry there may be the intended server
    if named in catalogue.servers:
        sheet.wrong(path, f"`{named}` is not among the servers of this suite", "add it to `servers`")
        return
    hint = suggest(named, (variant.slug for variant in variants), "this suite has")
    sheet.wrong(path, f"there is no server `{clip(named)}` in this suite", hint)

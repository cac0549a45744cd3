//! Text with placeholders: parsed and checked once, written as often as it is sent.

use std::collections::BTreeMap;

use memchr::memchr;

use crate::given::{Escape, Given, GivenValue, NO_VALUE};
use crate::request::{Part, Unsendable};
use crate::trace::{TraceContext, TraceShare};

/// What placeholders may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The lists that `{pick:name}` chooses from.
    pub picks: &'a BTreeMap<String, Vec<String>>,
    /// The names of `{take:name}`: values that a visitor took from answers.
    pub takes: &'a [String],
    /// The names of `{row:column}`: columns of the visitor's row.
    pub columns: &'a [String],
}

impl<'a> Names<'a> {
    /// Lists to pick from alone, for requests without a visitor.
    #[must_use]
    pub fn picks(picks: &'a BTreeMap<String, Vec<String>>) -> Self {
        Self { picks, takes: &[], columns: &[] }
    }
}

/// The source of the values of placeholders.
pub trait Values {
    /// The number of the request. It is taken at most once per request: all its `{seq}` are the same.
    fn seq(&mut self) -> u64;
    /// A whole number from `a` to `b`, inclusive.
    fn between(&mut self, a: i64, b: i64) -> i64;
    /// An index below `n`, which is not 0.
    fn pick(&mut self, n: usize) -> usize;
    /// The trace that the request begins, the same whenever it is asked for.
    fn trace_context(&mut self) -> TraceContext;
    /// The value that the visitor took under the name at this index of [`Names::takes`].
    fn taken(&self, _index: usize) -> &GivenValue {
        &NO_VALUE
    }
    /// The cell of the visitor's row in the column at this index of [`Names::columns`].
    fn cell(&self, _index: usize) -> &GivenValue {
        &NO_VALUE
    }
    /// The visitor's cookies for this request target, as `a=b; c=d`; empty for none. Only for templates with
    /// [`crate::Spec::cookies`].
    fn cookies(&mut self, _path: &[u8]) -> &[u8] {
        &[]
    }
}

/// The values of a request, drawn in the order of their placeholders: path, headers, body.
pub(crate) struct Drawn<'a, V> {
    pub(crate) values: &'a mut V,
    seq: Option<u64>,
    /// Why the request cannot be sent with these values.
    pub(crate) unfit: Option<Unfit>,
    /// Where the message begins in the bytes that it is appended to.
    begin: usize,
}

impl<'a, V: Values> Drawn<'a, V> {
    pub(crate) fn new(values: &'a mut V, begin: usize) -> Self {
        Self { values, seq: None, unfit: None, begin }
    }

    /// # Errors
    /// When a value that was given cannot be sent.
    pub(crate) fn result(self) -> Result<(), Unfit> {
        self.unfit.map_or(Ok(()), Err)
    }
}

/// A value of a visitor that cannot be sent where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A control character in the value of a header, or nothing at its beginning or end.
    Header,
    /// A request target that does not begin with `/`, nor with the scheme and authority of the server.
    Path,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Header => "a value that is empty, or has a control character, cannot be sent in a header",
            Self::Path => "a path begins neither with `/` nor with the address of this server",
        })
    }
}

impl std::error::Error for Unfit {}

/// A segment of text.
// A byte tells which it is: computed from another field, it costs as much as writing a short segment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Segment {
    /// Never empty, and never next to another literal.
    Literal(Vec<u8>),
    Seq,
    Rand(i64, i64),
    Pick(Box<str>, Box<[Box<str>]>),
    /// A trace context, of which this share is sampled.
    Trace(TraceShare),
    /// A value of the visitor.
    Given(Given, Escape),
    /// In an HTTP/1.1 head: the header with the visitor's cookies, or, after cookies of the request's own, the rest of it.
    Cookies {
        follow: bool,
        /// The request target, if it never varies.
        target: Option<Box<[u8]>>,
    },
}

/// Text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<Segment>);

impl Text {
    pub(crate) fn literal(text: &[u8]) -> Self {
        let mut made = Self::default();
        made.push_literal(text);
        made
    }

    /// Parse `text`: `{seq}`, `{rand:a..b}`, `{pick:name}`, `{traceparent}`, `{take:name}`, `{row:column}`; `{{` and `}}` are
    /// braces, and any other brace is literal. `escape`: how values of the visitor are written.
    pub(crate) fn parse(text: &str, part: Part, escape: &Escape, names: &Names<'_>) -> Result<Self, Unsendable> {
        let mut made = Self::default();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            made.push_literal(&rest.as_bytes()[..brace]);
            rest = &rest[brace..];
            let taken = if rest.starts_with("{{") || rest.starts_with("}}") {
                made.push_literal(&rest.as_bytes()[..1]);
                2
            } else if let Some((segment, taken)) = Segment::parse(rest, part, escape, names)? {
                made.0.push(segment);
                taken
            } else {
                made.push_literal(&rest.as_bytes()[..1]);
                1
            };
            rest = &rest[taken..];
        }
        made.push_literal(rest.as_bytes());
        Ok(made)
    }

    /// Parse a request target, of a server with this scheme and authority.
    pub(crate) fn parse_target(text: &str, origin: &[u8], names: &Names<'_>) -> Result<Self, Unsendable> {
        let mut made = Self::parse(text, Part::Path, &Escape::Path, names)?;
        // A value at the beginning may have a query.
        let mut in_query = matches!(made.0.first(), Some(Segment::Given(..)));
        let mut in_value = false;
        for segment in &mut made.0 {
            match segment {
                Segment::Literal(text) => {
                    for byte in text {
                        in_query |= *byte == b'?';
                        in_value = in_query && (*byte == b'=' || (in_value && *byte != b'&'));
                    }
                }
                Segment::Given(_, escape) if in_value => *escape = Escape::Query,
                _ => {}
            }
        }
        if let Some(Segment::Given(_, escape)) = made.0.first_mut() {
            *escape = Escape::Target(origin.into());
        }
        Ok(made)
    }

    /// Parse the value of header `i`.
    pub(crate) fn parse_header_value(text: &str, i: usize, names: &Names<'_>) -> Result<Self, Unsendable> {
        let mut made = Self::parse(text, Part::Header(i), &Escape::Header, names)?;
        let last = made.0.len().saturating_sub(1);
        for at in [0, last] {
            if last > 0
                && let Some(Segment::Given(_, escape)) = made.0.get_mut(at)
            {
                *escape = Escape::HeaderEdge;
            }
        }
        Ok(made)
    }

    pub(crate) fn push_literal(&mut self, text: &[u8]) {
        if let Some(Segment::Literal(before)) = self.0.last_mut() {
            before.extend_from_slice(text);
        } else if !text.is_empty() {
            self.0.push(Segment::Literal(text.to_vec()));
        }
    }

    /// Add the visitor's cookies for a request target, after cookies of the request's own or as a header.
    pub(crate) fn push_cookies(&mut self, follow: bool, target: &Self) {
        self.0.push(Segment::Cookies { follow, target: target.fixed().map(Into::into) });
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for segment in &other.0 {
            match segment {
                Segment::Literal(text) => self.push_literal(text),
                varying => self.0.push(varying.clone()),
            }
        }
    }

    /// The text, if nothing in it varies.
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(&[]),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Append the text with values in place of placeholders.
    pub(crate) fn render<V: Values>(&self, out: &mut Vec<u8>, drawn: &mut Drawn<'_, V>) {
        for segment in &self.0 {
            match segment {
                Segment::Literal(text) => out.extend_from_slice(text),
                Segment::Seq => {
                    let seq = *drawn.seq.get_or_insert_with(|| drawn.values.seq());
                    append_number(out, seq);
                }
                Segment::Rand(a, b) => {
                    let number = drawn.values.between(*a, *b);
                    if number < 0 {
                        out.push(b'-');
                    }
                    append_number(out, number.unsigned_abs());
                }
                Segment::Pick(_, entries) => {
                    let picked = drawn.values.pick(entries.len()).min(entries.len() - 1);
                    out.extend_from_slice(entries[picked].as_bytes());
                }
                Segment::Trace(share) => drawn.values.trace_context().append(*share, out),
                Segment::Given(given, escape) => {
                    if let Err(why) = escape.append(given.value(&*drawn.values), out) {
                        drawn.unfit = Some(why);
                    }
                }
                Segment::Cookies { follow, target } => {
                    let target = target.as_deref().unwrap_or_else(|| target_in(&out[drawn.begin..]));
                    let cookies = drawn.values.cookies(target);
                    if !cookies.is_empty() {
                        out.extend_from_slice(if *follow { b"; " } else { b"Cookie: " });
                        out.extend_from_slice(cookies);
                        out.extend_from_slice(if *follow { b"" } else { b"\r\n" });
                    }
                }
            }
        }
    }

    /// The least length of the text in bytes.
    pub(crate) fn least_bytes(&self) -> usize {
        let least = |segment: &Segment| match segment {
            Segment::Literal(text) => text.len(),
            Segment::Seq | Segment::Rand(..) => 1,
            Segment::Pick(_, entries) => entries.iter().map(|entry| entry.len()).min().unwrap_or(0),
            Segment::Trace(_) => TraceContext::BYTES,
            Segment::Given(..) | Segment::Cookies { .. } => 0,
        };
        self.0.iter().map(least).sum()
    }

    /// The share of requests with this text whose trace is sampled; `None` if it has no trace context.
    pub(crate) fn trace_share(&self) -> Option<TraceShare> {
        let share = |segment: &Segment| if let Segment::Trace(share) = segment { Some(*share) } else { None };
        self.0.iter().filter_map(share).max()
    }

    /// Check that it is a path whatever is picked.
    pub(crate) fn check_path(&self) -> Result<(), Unsendable> {
        let visible = |text: &[u8]| text.iter().all(u8::is_ascii_graphic);
        self.check_bytes(Part::Path, &Unsendable::Path, visible)?;
        if matches!(self.0.first(), Some(Segment::Given(..))) {
            // What it begins with is known, and checked, when it is written.
            return Ok(());
        }
        let starts = check_edge(self.0.iter(), Part::Path, &Unsendable::Path, |text| text.first() == Some(&b'/'))?;
        if starts { Ok(()) } else { Err(Unsendable::Path) }
    }

    /// Check that it is the value of header `i` whatever is picked.
    pub(crate) fn check_header_value(&self, i: usize) -> Result<(), Unsendable> {
        let (part, why) = (Part::Header(i), Unsendable::HeaderValue(i));
        let plain = |text: &[u8]| text.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
        self.check_bytes(part, &why, plain)?;
        let is_space = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        check_edge(self.0.iter(), part, &why, |text| !is_space(text.first()))?;
        check_edge(self.0.iter().rev(), part, &why, |text| !is_space(text.last()))?;
        Ok(())
    }

    /// Check all text, picked or literal.
    fn check_bytes(&self, part: Part, why: &Unsendable, is_right: impl Fn(&[u8]) -> bool) -> Result<(), Unsendable> {
        self.0.iter().try_for_each(|segment| segment.check(part, why, &is_right))
    }
}

impl Segment {
    /// Parse a placeholder at the beginning of `text`. Returns it and its length in bytes; `None` when there is none.
    fn parse(text: &str, part: Part, escape: &Escape, names: &Names<'_>) -> Result<Option<(Self, usize)>, Unsendable> {
        if text.starts_with("{seq}") {
            return Ok(Some((Self::Seq, "{seq}".len())));
        }
        // An unclosed placeholder is literal text, but nobody means to send that.
        let (segment, inner) = if let Some(rest) = text.strip_prefix("{rand:") {
            let range = rest.split_once('}').map(|(range, _)| range);
            let bad = || Unsendable::Rand(part, shown(range.unwrap_or(rest)));
            let (a, b) = range.and_then(|range| range.split_once("..")).ok_or_else(bad)?;
            let numbers: Option<(i64, i64)> = a.parse().ok().zip(b.parse().ok());
            let (a, b) = numbers.filter(|(a, b)| a <= b).ok_or_else(bad)?;
            (Self::Rand(a, b), range.unwrap_or_default())
        } else if let Some(rest) = text.strip_prefix("{pick:") {
            let name = rest.split_once('}').map(|(name, _)| name);
            let entries = name.and_then(|name| names.picks.get(name)).filter(|entries| !entries.is_empty());
            let entries = entries.ok_or_else(|| Unsendable::Pick(part, shown(name.unwrap_or(rest))))?;
            let name = name.unwrap_or_default();
            (Self::Pick(name.into(), entries.iter().map(|entry| entry.as_str().into()).collect()), name)
        } else if let Some(rest) = text.strip_prefix("{traceparent").filter(|rest| rest.starts_with([':', '}'])) {
            let share = rest.split_once('}').map(|(share, _)| share);
            let parsed = share.and_then(|share| match share.strip_prefix(':') {
                Some(percent) => TraceShare::parse(percent),
                None => Some(TraceShare::ALL),
            });
            let placeholder = text.split_inclusive('}').next().unwrap_or(text);
            let parsed = parsed.ok_or_else(|| Unsendable::Trace(part, shown(placeholder)))?;
            return Ok(Some((Self::Trace(parsed), placeholder.len())));
        } else if let Some((given, length)) = Given::parse(text, part, names)? {
            return Ok(Some((Self::Given(given, escape.clone()), length)));
        } else {
            return Ok(None);
        };
        Ok(Some((segment, "{rand:}".len() + inner.len())))
    }

    fn check(&self, part: Part, why: &Unsendable, is_right: &impl Fn(&[u8]) -> bool) -> Result<(), Unsendable> {
        match self {
            Self::Literal(text) if !is_right(text) => Err(why.clone()),
            Self::Pick(name, entries) => match entries.iter().position(|entry| !is_right(entry.as_bytes())) {
                Some(i) => Err(Unsendable::Entry(part, name.to_string(), i)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Check what may come first among `segments`: several may, because picks may be empty. Returns whether any surely does.
fn check_edge<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    part: Part,
    why: &Unsendable,
    is_right: impl Fn(&[u8]) -> bool,
) -> Result<bool, Unsendable> {
    for segment in segments {
        segment.check(part, why, &|text| text.is_empty() || is_right(text))?;
        match segment {
            Segment::Pick(_, entries) if entries.iter().any(|entry| entry.is_empty()) => {}
            Segment::Seq | Segment::Rand(..) | Segment::Trace(_) => return Ok(is_right(b"0")),
            // The values of a visitor are checked when they are written.
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// The request target in the beginning of an HTTP/1.1 head.
fn target_in(head: &[u8]) -> &[u8] {
    let begin = memchr(b' ', head).map_or(head.len(), |space| space + 1);
    let rest = &head[begin..];
    &rest[..memchr(b' ', rest).unwrap_or(rest.len())]
}

/// Text for a message, abridged if it is long.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Append a number in decimal.
pub(crate) fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

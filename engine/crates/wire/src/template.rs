//! A request that is checked and assembled once, and written as often as it is sent.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::body_chunks::{append_chunks, append_in_chunks};
use crate::fields::Fields;
use crate::given::Escape;
use crate::request::{Body, BodyEscape, Part, Spec, Unsendable};
use crate::text::{Drawn, Names, Text, Unfit, Values, append_number};
use crate::trace::TraceShare;

/// The index of `:path` among the fields of an HTTP/2 request.
const PATH: usize = 3;

/// The headers of a request in order, with names as given.
type Headers<'a> = Vec<(&'a str, Text)>;

/// A request that can be sent.
#[derive(Clone, Debug)]
pub struct Template {
    form: Form,
    content: Content,
    /// The whole HTTP/1.1 request, if nothing varies.
    fixed: Option<Arc<[u8]>>,
    /// All HTTP/2 fields, if nothing varies.
    fixed_fields: Option<Fields>,
    /// The visitor's cookies are sent too.
    cookies: bool,
}

#[derive(Clone, Debug)]
enum Form {
    /// HTTP/1.1: the head; for the length of a varying body, only the name.
    Head(Text),
    /// HTTP/2: the fields, except for the length of a varying body.
    Fields(Vec<(Box<[u8]>, Text)>),
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Shared bytes that are never copied, possibly empty; in HTTP/1.1 with the framing of chunks, if it is sent in chunks.
    Fixed(Arc<[u8]>),
    /// A text, and the length of its chunks if it is sent without its own length.
    Varying(Text, Option<NonZeroUsize>),
}

impl Template {
    /// Check and assemble a request, whose placeholders may have these names.
    ///
    /// # Errors
    /// [`Unsendable`] names the part that would corrupt the message, or cannot be filled in.
    pub fn compile(mut spec: Spec<'_>, names: &Names<'_>) -> Result<Self, Unsendable> {
        spec.check()?;
        let origin = format!("{}://{}", if spec.tls { "https" } else { "http" }, spec.authority());
        let path = Text::parse_target(spec.path, origin.as_bytes(), names)?;
        path.check_path()?;
        let mut headers = Headers::new();
        for (i, (name, value)) in spec.headers.iter().enumerate() {
            let value = Text::parse_header_value(value, i, names)?;
            value.check_header_value(i)?;
            headers.push((name, value));
        }
        let body = std::mem::replace(&mut spec.body, Body::Bytes(Vec::new()));
        let mut content = Content::of(body, spec.chunks, names)?;
        let form = if spec.http2 {
            Form::Fields(fields(&spec, path, headers, &content))
        } else {
            Form::Head(head(&spec, &path, headers, &content))
        };
        if let (Content::Fixed(bytes), Some(chunks), false) = (&content, spec.chunks, spec.http2) {
            let mut framed = Vec::new();
            append_chunks(&mut framed, bytes, chunks);
            content = Content::Fixed(framed.into());
        }
        let mut made = Self { form, content, fixed: None, fixed_fields: None, cookies: spec.cookies };
        made.put_fixed_together();
        Ok(made)
    }

    /// The whole HTTP/1.1 request, if nothing in it varies.
    #[must_use]
    #[inline]
    pub fn fixed(&self) -> Option<&Arc<[u8]>> {
        self.fixed.as_ref()
    }

    /// All HTTP/2 fields, if nothing varies; the body is [`Template::fixed_body`].
    #[must_use]
    #[inline]
    pub fn fixed_fields(&self) -> Option<&Fields> {
        self.fixed_fields.as_ref()
    }

    /// The body to send after the head or the fields, if there is one and it does not vary. `None` also if [`Template::fixed`]
    /// already has it.
    #[must_use]
    #[inline]
    pub fn fixed_body(&self) -> Option<&Arc<[u8]>> {
        match &self.content {
            Content::Fixed(bytes) if self.fixed.is_none() && !bytes.is_empty() => Some(bytes),
            _ => None,
        }
    }

    /// Append the HTTP/1.1 request with values from `values`, without a [`Template::fixed_body`].
    ///
    /// Allocates only what `out` lacks. Appends nothing for an HTTP/2 template.
    ///
    /// # Errors
    /// When a value of the visitor cannot be sent where it stands: what was appended is no request.
    pub fn render(&self, out: &mut Vec<u8>, values: &mut impl Values) -> Result<(), Unfit> {
        if let Some(fixed) = &self.fixed {
            out.extend_from_slice(fixed);
            return Ok(());
        }
        let Form::Head(head) = &self.form else {
            return Ok(());
        };
        let mut drawn = Drawn::new(values, out.len());
        head.render(out, &mut drawn);
        match &self.content {
            Content::Varying(text, None) => append_with_length(out, text, &mut drawn),
            Content::Varying(text, Some(chunks)) => {
                let begin = out.len();
                text.render(out, &mut drawn);
                append_in_chunks(out, begin, *chunks);
            }
            Content::Fixed(_) => {}
        }
        drawn.result()
    }

    /// Replace `fields` with the request's fields, and the body if it varies.
    ///
    /// Allocates only what `fields` lacks. An HTTP/1.1 template has no fields.
    ///
    /// # Errors
    /// When a value of the visitor cannot be sent where it stands.
    pub fn render_fields(&self, fields: &mut Fields, values: &mut impl Values) -> Result<(), Unfit> {
        fields.clear();
        let Form::Fields(parts) = &self.form else {
            return Ok(());
        };
        let mut drawn = Drawn::new(values, 0);
        for (name, value) in parts {
            fields.push(name, |out| value.render(out, &mut drawn));
        }
        if let Content::Varying(text, chunks) = &self.content {
            text.render(&mut fields.body, &mut drawn);
            if chunks.is_none() {
                let length = fields.body.len() as u64;
                fields.push(b"content-length", |out| append_number(out, length));
            }
        }
        if self.cookies {
            let path = fields.iter().nth(PATH).map_or(&[][..], |(_, path)| path);
            let cookies = drawn.values.cookies(path);
            if !cookies.is_empty() {
                // Cookies may come in several fields (RFC 9113, section 8.2.3).
                fields.push(b"cookie", |out| out.extend_from_slice(cookies));
            }
        }
        drawn.result()
    }

    /// The share of requests whose trace is sampled; `None` if they have no trace context.
    #[must_use]
    pub fn trace_share(&self) -> Option<TraceShare> {
        let of_form = match &self.form {
            Form::Head(head) => head.trace_share(),
            Form::Fields(parts) => parts.iter().filter_map(|(_, value)| value.trace_share()).max(),
        };
        of_form.max(self.content.trace_share())
    }

    fn put_fixed_together(&mut self) {
        if self.cookies {
            return;
        }
        let Content::Fixed(body) = &self.content else {
            return;
        };
        match &self.form {
            Form::Head(head) => self.fixed = head.fixed().map(|head| [head, body].concat().into()),
            Form::Fields(parts) => {
                let texts: Option<Vec<_>> = parts.iter().map(|(name, value)| Some((name, value.fixed()?))).collect();
                self.fixed_fields = texts.map(|texts| {
                    let mut fields = Fields::new();
                    for (name, value) in texts {
                        fields.push(name, |out| out.extend_from_slice(value));
                    }
                    fields
                });
            }
        }
        if self.fixed.is_some() {
            // Kept once: a body may be large.
            self.content = Content::Fixed([].into());
        }
    }
}

impl Content {
    pub(crate) fn of(body: Body, chunks: Option<NonZeroUsize>, names: &Names<'_>) -> Result<Self, Unsendable> {
        let text = match body {
            Body::Bytes(bytes) => return Ok(Self::Fixed(bytes.into())),
            Body::Text(text, escape) => {
                let escape = match escape {
                    BodyEscape::None => Escape::None,
                    BodyEscape::Json => Escape::Json,
                    BodyEscape::Form => Escape::Form,
                };
                Text::parse(&text, Part::Body, &escape, names)?
            }
        };
        Ok(match text.fixed() {
            Some(bytes) => Self::Fixed(bytes.into()),
            None => Self::Varying(text, chunks),
        })
    }

    pub(crate) fn trace_share(&self) -> Option<TraceShare> {
        match self {
            Self::Fixed(_) => None,
            Self::Varying(text, _) => text.trace_share(),
        }
    }

    /// The length in the head; `None` if there is none, or it varies.
    fn fixed_length(&self, spec: &Spec<'_>) -> Option<usize> {
        match self {
            Self::Fixed(_) if spec.chunks.is_some() => None,
            Self::Fixed(bytes) => (!bytes.is_empty() || spec.means_a_body()).then_some(bytes.len()),
            Self::Varying(..) => None,
        }
    }
}

fn head(spec: &Spec<'_>, path: &Text, headers: Headers<'_>, content: &Content) -> Text {
    let mut head = Text::literal(format!("{} ", spec.method).as_bytes());
    head.append(path);
    head.push_literal(b" HTTP/1.1\r\n");
    if !spec.names("host") {
        head.push_literal(format!("Host: {}\r\n", spec.authority()).as_bytes());
    }
    let mut follow = false;
    for (name, value) in headers {
        head.push_literal(format!("{name}: ").as_bytes());
        head.append(&value);
        if spec.cookies && !follow && name.eq_ignore_ascii_case("cookie") {
            follow = true;
            head.push_cookies(true, path);
        }
        head.push_literal(b"\r\n");
    }
    if spec.cookies && !follow {
        head.push_cookies(false, path);
    }
    if let Some(length) = content.fixed_length(spec) {
        head.push_literal(format!("Content-Length: {length}\r\n").as_bytes());
    }
    match (content, spec.chunks) {
        (_, Some(_)) => head.push_literal(b"Transfer-Encoding: chunked\r\n\r\n"),
        (Content::Varying(..), None) => head.push_literal(b"Content-Length: "),
        (Content::Fixed(_), None) => head.push_literal(b"\r\n"),
    }
    head
}

fn fields(spec: &Spec<'_>, path: Text, mut headers: Headers<'_>, content: &Content) -> Vec<(Box<[u8]>, Text)> {
    // HTTP/1.1's `Host` corresponds to HTTP/2's `:authority`, and they may not differ (RFC 9113, section 8.3.1).
    let host = headers.iter().position(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or_else(|| Text::literal(spec.authority().as_bytes()), |host| headers.remove(host).1);
    let scheme: &[u8] = if spec.tls { b"https" } else { b"http" };
    let mut fields = vec![
        (":method".to_owned(), Text::literal(spec.method.as_bytes())),
        (":scheme".to_owned(), Text::literal(scheme)),
        (":authority".to_owned(), authority),
        (":path".to_owned(), path),
    ];
    fields.extend(headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)));
    if let Some(length) = content.fixed_length(spec) {
        fields.push(("content-length".to_owned(), Text::literal(length.to_string().as_bytes())));
    }
    fields.into_iter().map(|(name, value)| (name.into_bytes().into(), value)).collect()
}

/// Append the length of the text, a blank line, and the text.
///
/// The length is known only after the text. So room is reserved for the digits of the shortest length that the text can have,
/// which nearly always suffices; otherwise the text is moved.
fn append_with_length<V: Values>(out: &mut Vec<u8>, text: &Text, drawn: &mut Drawn<'_, V>) {
    const BLANK_LINE: &[u8] = b"\r\n\r\n";
    let at = out.len();
    append_number(out, text.least_bytes() as u64);
    let room = out.len() - at;
    out.extend_from_slice(BLANK_LINE);
    let begin = out.len();
    text.render(out, drawn);
    let end = out.len();
    append_number(out, (end - begin) as u64);
    let digits = out.len() - end;
    if digits == room {
        out.copy_within(end.., at);
        out.truncate(end);
    } else {
        // Move the digits to the front of the room, and remove the room.
        out[at..].rotate_right(digits);
        out.drain(at + digits..at + digits + room);
    }
}

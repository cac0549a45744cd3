//! The cookies of a visitor.

use crate::date;
use crate::site::{self, Dropped, Hindrance, Refusal, Site, Unsent};

/// The most cookies that are kept, as in browsers (RFC 6265, section 6.1).
const MOST_COOKIES: usize = 50;
/// The most bytes of a name and its value together, and of the value of an attribute (RFC 6265bis, section 5.6).
const LONGEST: usize = 4096;
const LONGEST_ATTRIBUTE: usize = 1024;

/// The cookies of a visitor of a single host, by name, path and domain.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    cookies: Vec<Cookie>,
    /// The last result of [`Jar::header`]. Unless it varies, the next.
    header: Vec<u8>,
    /// Whether the header depends on its target or on the time: not all cookies are without an end, and sent with any request.
    varies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: Box<[u8]>,
    value: Vec<u8>,
    path: Box<[u8]>,
    /// That of its `Domain`, with which it is another cookie than without; empty for a cookie of the host alone.
    domain: Box<[u8]>,
    secure: bool,
    /// Seconds since 1970.
    expires_s: Option<i64>,
    /// The `Set-Cookie` that set it last, whether that names the path, and its `Max-Age` in seconds.
    text: Box<[u8]>,
    names_path: bool,
    max_age_s: Option<i64>,
}

impl Jar {
    /// No cookies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forget all cookies.
    pub fn clear(&mut self) {
        self.cookies.clear();
        self.settle();
    }

    /// An answer of the `site` to the request for `target` has this `Set-Cookie`. `now_s`: seconds since 1970.
    ///
    /// Returns the cookie if it was dropped, as browsers do: one of another host, one that is `Secure` where connections are
    /// not, one that exceeds the limits, one that has expired and was never kept.
    pub fn set(&mut self, set_cookie: &[u8], target: &[u8], site: &Site, now_s: i64) -> Option<Dropped> {
        if self.set_again(set_cookie, target, site, now_s) {
            return None;
        }
        let kept = Cookie::parse(set_cookie, target, site, now_s).and_then(|cookie| self.keep(cookie, now_s));
        self.settle();
        kept.err().map(|why| Dropped::new(name_of(set_cookie), why))
    }

    /// The cookies that were kept and are not sent with a request of the `site` to `target`, each with its reason. One whose name
    /// another has that is sent is not among them.
    pub fn unsent(&self, target: &[u8], site: &Site, now_s: i64) -> impl Iterator<Item = Unsent> {
        let path = path_of(target);
        let is_sent = move |name: &[u8]| {
            let mut named = self.cookies.iter().filter(|cookie| *cookie.name == *name);
            named.any(|cookie| cookie.hindrance(path, site.is_secure(), now_s).is_none())
        };
        self.cookies.iter().filter_map(move |cookie| {
            let why = cookie.hindrance(path, site.is_secure(), now_s).filter(|_| !is_sent(&cookie.name))?;
            Some(Unsent::new(&cookie.name, why))
        })
    }

    fn keep(&mut self, cookie: Cookie, now_s: i64) -> Result<(), Refusal> {
        let known = self.cookies.iter().position(|other| other.is_same(&cookie));
        match (known, cookie.has_expired(now_s)) {
            (Some(known), true) => drop(self.cookies.remove(known)),
            (Some(known), false) => self.cookies[known] = cookie,
            // Servers delete what a visitor may have by an empty value.
            (None, true) if !cookie.value.is_empty() => return Err(Refusal::Expired),
            (None, true) => {}
            (None, false) => {
                if self.cookies.len() >= MOST_COOKIES {
                    self.cookies.retain(|cookie| !cookie.has_expired(now_s));
                }
                if self.cookies.len() >= MOST_COOKIES {
                    return Err(Refusal::TooMany);
                }
                // Longer paths come first, and then older cookies (RFC 6265, section 5.4).
                let after = |other: &Cookie| other.path.len() >= cookie.path.len();
                let place = self.cookies.iter().position(|other| !after(other)).unwrap_or(self.cookies.len());
                self.cookies.insert(place, cookie);
            }
        }
        Ok(())
    }

    /// The cookies have changed. The header of those that nearly all servers set is put together once.
    fn settle(&mut self) {
        self.varies = !self.cookies.iter().all(Cookie::is_for_all);
        if !self.varies {
            self.put_together(b"/", false, 0);
        }
    }

    /// Set a cookie by the text that set it last, which many servers send with every answer: it is compared, not parsed. Returns
    /// whether it was set.
    fn set_again(&mut self, text: &[u8], target: &[u8], site: &Site, now_s: i64) -> bool {
        let is_same = |cookie: &&mut Cookie| {
            *cookie.text == *text
                && (site.is_secure() || !cookie.secure)
                && site.takes(&cookie.domain)
                && (cookie.names_path || *cookie.path == *default_path(target))
        };
        let Some(cookie) = self.cookies.iter_mut().find(is_same) else {
            return false;
        };
        cookie.expires_s = cookie.max_age_s.map_or(cookie.expires_s, |age_s| Some(now_s.saturating_add(age_s)));
        !cookie.has_expired(now_s)
    }

    /// The cookies for a request of the `site` to `target`, which begins with `/`, as `a=b; c=d`; empty for none.
    #[inline]
    pub fn header(&mut self, target: &[u8], site: &Site, now_s: i64) -> &[u8] {
        if self.varies {
            self.put_together(target, site.is_secure(), now_s);
        }
        &self.header
    }

    fn put_together(&mut self, target: &[u8], is_secure: bool, now_s: i64) {
        self.header.clear();
        let path = path_of(target);
        for cookie in &self.cookies {
            if cookie.hindrance(path, is_secure, now_s).is_some() {
                continue;
            }
            if !self.header.is_empty() {
                self.header.extend_from_slice(b"; ");
            }
            if !cookie.name.is_empty() {
                self.header.extend_from_slice(&cookie.name);
                self.header.push(b'=');
            }
            self.header.extend_from_slice(&cookie.value);
        }
    }

    /// The value of the cookie of this name with the longest path that has not expired.
    #[must_use]
    pub fn value(&self, name: &[u8], now_s: i64) -> Option<&[u8]> {
        let cookie = self.cookies.iter().find(|cookie| *cookie.name == *name && !cookie.has_expired(now_s))?;
        Some(&cookie.value)
    }
}

impl Cookie {
    /// Whether it is sent with any request, whenever and whether over TLS or not.
    fn is_for_all(&self) -> bool {
        *self.path == *b"/" && !self.secure && self.expires_s.is_none()
    }

    fn has_expired(&self, now_s: i64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_s)
    }

    /// Why it is not sent with a request to `path`; `None` if it is.
    fn hindrance(&self, path: &[u8], is_secure: bool, now_s: i64) -> Option<Hindrance<'_>> {
        match () {
            () if self.has_expired(now_s) => Some(Hindrance::Expired),
            () if self.secure && !is_secure => Some(Hindrance::NotSecure),
            () if !matches(path, &self.path) => Some(Hindrance::Path(&self.path)),
            () => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.path == other.path && self.domain == other.domain
    }

    /// RFC 6265bis, sections 5.6 and 5.7.
    fn parse(text: &[u8], target: &[u8], site: &Site, now_s: i64) -> Result<Self, Refusal> {
        if text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return Err(Refusal::Control);
        }
        let pair = text.split(|byte| *byte == b';').next().unwrap_or_default();
        let (name, value) = split_at_equals(pair).unwrap_or((&[], pair.trim_ascii()));
        if name.is_empty() && value.is_empty() {
            return Err(Refusal::Empty);
        }
        if name.len() + value.len() > LONGEST {
            return Err(Refusal::TooLong);
        }
        let Attributes { path, domain, secure, max_age_s, expires_s } = Attributes::of(text);
        let domain = site.domain_of(domain)?;
        if secure && !site.is_secure() {
            return Err(Refusal::NotSecure);
        }
        // A cookie without a name whose value looks like a prefixed name would pass for one where it is sent.
        let prefixed = if name.is_empty() { value } else { name };
        site::check_prefix(prefixed, secure && !name.is_empty(), domain.is_empty() && path == Some(b"/"))?;
        let expires_s =
            max_age_s.map(|age_s| if age_s <= 0 { i64::MIN } else { now_s.saturating_add(age_s) }).or(expires_s);
        Ok(Self {
            name: name.into(),
            value: value.to_vec(),
            names_path: path.is_some(),
            path: path.unwrap_or_else(|| default_path(target)).into(),
            domain,
            secure,
            expires_s,
            text: text.into(),
            max_age_s,
        })
    }
}

/// What stands behind the name and the value of a cookie.
#[derive(Default)]
struct Attributes<'a> {
    path: Option<&'a [u8]>,
    domain: &'a [u8],
    secure: bool,
    max_age_s: Option<i64>,
    expires_s: Option<i64>,
}

impl<'a> Attributes<'a> {
    /// RFC 6265bis, section 5.6: the last of equal names counts, and one that is too long does not.
    fn of(text: &'a [u8]) -> Self {
        let mut read = Self::default();
        for part in text.split(|byte| *byte == b';').skip(1) {
            let (name, value) = split_at_equals(part).unwrap_or((part.trim_ascii(), &[]));
            if value.len() > LONGEST_ATTRIBUTE {
                continue;
            }
            match &*name.to_ascii_lowercase() {
                b"path" => read.path = Some(value).filter(|value| value.first() == Some(&b'/')),
                b"domain" => read.domain = value,
                b"secure" => read.secure = true,
                b"max-age" => read.max_age_s = seconds(value).or(read.max_age_s),
                b"expires" => {
                    read.expires_s = std::str::from_utf8(value).ok().and_then(date::parse).or(read.expires_s);
                }
                _ => {}
            }
        }
        read
    }
}

/// The name of a cookie, or of one without a name its value.
fn name_of(set_cookie: &[u8]) -> &[u8] {
    let pair = set_cookie.split(|byte| *byte == b';').next().unwrap_or_default();
    split_at_equals(pair).map_or(pair.trim_ascii(), |(name, _)| name)
}

fn split_at_equals(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = part.iter().position(|byte| *byte == b'=')?;
    Some((part[..equals].trim_ascii(), part[equals + 1..].trim_ascii()))
}

/// The seconds of `Max-Age`: digits, perhaps after a minus sign. More than fits is for ever.
fn seconds(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
}

/// A request target without its query.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// RFC 6265, section 5.1.4.
fn default_path(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash @ 1..) if path[0] == b'/' => &path[..slash],
        _ => b"/",
    }
}

/// RFC 6265, section 5.1.4.
fn matches(path: &[u8], cookie_path: &[u8]) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.last() == Some(&b'/') || rest[0] == b'/')
}

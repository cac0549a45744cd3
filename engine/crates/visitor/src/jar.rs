//! The cookies of a visitor.

use crate::date;

/// The most cookies that are kept, as in browsers (RFC 6265, section 6.1).
const MOST_COOKIES: usize = 50;
/// The longest `Set-Cookie` that is read.
const LONGEST: usize = 4096;

/// The cookies of a visitor of a single host, by name and path.
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

    /// An answer to the request for `target` has this `Set-Cookie`. `tls`: it came over TLS. `now_s`: seconds since 1970.
    ///
    /// What is no cookie is ignored, and so is a cookie that would exceed the limits: 4 KiB, or 50 cookies that have not expired.
    pub fn set(&mut self, set_cookie: &[u8], target: &[u8], tls: bool, now_s: i64) {
        if self.set_again(set_cookie, target, tls, now_s) {
            return;
        }
        let Some(cookie) = Cookie::parse(set_cookie, target, now_s).filter(|cookie| tls || !cookie.secure) else {
            return;
        };
        let known = self.cookies.iter().position(|other| other.name == cookie.name && other.path == cookie.path);
        match (known, cookie.has_expired(now_s)) {
            (Some(known), true) => drop(self.cookies.remove(known)),
            (Some(known), false) => self.cookies[known] = cookie,
            (None, true) => {}
            (None, false) => {
                if self.cookies.len() >= MOST_COOKIES {
                    self.cookies.retain(|cookie| !cookie.has_expired(now_s));
                }
                if self.cookies.len() < MOST_COOKIES {
                    // Longer paths come first, and then older cookies (RFC 6265, section 5.4).
                    let after = |other: &Cookie| other.path.len() >= cookie.path.len();
                    let place = self.cookies.iter().position(|other| !after(other)).unwrap_or(self.cookies.len());
                    self.cookies.insert(place, cookie);
                }
            }
        }
        self.settle();
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
    fn set_again(&mut self, text: &[u8], target: &[u8], tls: bool, now_s: i64) -> bool {
        let is_same = |cookie: &&mut Cookie| {
            *cookie.text == *text
                && (tls || !cookie.secure)
                && (cookie.names_path || *cookie.path == *default_path(target))
        };
        let Some(cookie) = self.cookies.iter_mut().find(is_same) else {
            return false;
        };
        cookie.expires_s = cookie.max_age_s.map_or(cookie.expires_s, |age_s| Some(now_s.saturating_add(age_s)));
        !cookie.has_expired(now_s)
    }

    /// The cookies for a request to `target`, which begins with `/`, as `a=b; c=d`; empty for none.
    #[inline]
    pub fn header(&mut self, target: &[u8], tls: bool, now_s: i64) -> &[u8] {
        if self.varies {
            self.put_together(target, tls, now_s);
        }
        &self.header
    }

    fn put_together(&mut self, target: &[u8], tls: bool, now_s: i64) {
        self.header.clear();
        let path = path_of(target);
        for cookie in &self.cookies {
            if cookie.has_expired(now_s) || (cookie.secure && !tls) || !matches(path, &cookie.path) {
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

    /// RFC 6265, section 5.2 and 5.3; prefixes of names, as in section 4.1.3 of its successor.
    fn parse(text: &[u8], target: &[u8], now_s: i64) -> Option<Self> {
        if text.len() > LONGEST || text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return None;
        }
        let mut parts = text.split(|byte| *byte == b';');
        let pair = parts.next()?;
        let (name, value) = split_at_equals(pair).unwrap_or((&[], pair.trim_ascii()));
        if name.is_empty() && value.is_empty() {
            return None;
        }
        let (mut path, mut secure, mut max_age_s, mut expires_s) = (None, false, None, None);
        for part in parts {
            let (attribute, value) = split_at_equals(part).unwrap_or((part.trim_ascii(), &[]));
            if attribute.eq_ignore_ascii_case(b"path") {
                path = Some(value).filter(|value| value.first() == Some(&b'/'));
            } else if attribute.eq_ignore_ascii_case(b"secure") {
                secure = true;
            } else if attribute.eq_ignore_ascii_case(b"max-age") {
                max_age_s = seconds(value).or(max_age_s);
            } else if attribute.eq_ignore_ascii_case(b"expires") {
                expires_s = std::str::from_utf8(value).ok().and_then(date::parse).or(expires_s);
            }
        }
        let expires_s =
            max_age_s.map(|age_s| if age_s <= 0 { i64::MIN } else { now_s.saturating_add(age_s) }).or(expires_s);
        let names_path = path.is_some();
        let path = path.unwrap_or_else(|| default_path(target));
        let prefixed = |prefix: &[u8]| name.len() >= prefix.len() && name[..prefix.len()].eq_ignore_ascii_case(prefix);
        let is_allowed = !prefixed(b"__secure-") && !prefixed(b"__host-") || secure;
        is_allowed.then(|| Self {
            name: name.into(),
            value: value.to_vec(),
            path: path.into(),
            secure,
            expires_s,
            text: text.into(),
            names_path,
            max_age_s,
        })
    }
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

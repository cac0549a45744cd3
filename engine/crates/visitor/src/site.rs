//! Whose cookies a site may set, and why others are dropped (RFC 6265bis, section 5.7).

use std::fmt;
use std::net::IpAddr;

/// The site that a visitor sees: its host, and whether browsers hold its connections for secure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// In lower case, without brackets.
    host: Box<str>,
    is_ip: bool,
    is_secure: bool,
}

impl Site {
    /// The site of a host, without its port. Browsers send `Secure` cookies over TLS, and to their own machine without it
    /// (Secure Contexts, section 3.1).
    #[must_use]
    pub fn new(host: &str, tls: bool) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let ip = host.split('%').next().unwrap_or_default().parse::<IpAddr>().ok();
        let name = host.strip_suffix('.').unwrap_or(&host);
        let is_local = ip.map_or(name == "localhost" || name.ends_with(".localhost"), |ip| ip.is_loopback());
        Self { is_ip: ip.is_some(), is_secure: tls || is_local, host: host.into() }
    }

    /// Whether `Secure` cookies are kept and sent.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether a cookie of this domain is for its host; an empty domain is.
    pub(crate) fn takes(&self, domain: &[u8]) -> bool {
        let host = self.host.as_bytes();
        let is_parent = || {
            let before = host.strip_suffix(domain).and_then(<[u8]>::last);
            !self.is_ip && before == Some(&b'.')
        };
        domain.is_empty() || host == domain || is_parent()
    }

    /// The domain of a cookie with this `Domain`; empty for one of the host alone.
    ///
    /// # Errors
    /// When it is that of another host, or of a public suffix, under which others have their sites.
    pub(crate) fn domain_of(&self, written: &[u8]) -> Result<Box<[u8]>, Refusal> {
        let domain = written.strip_prefix(b".").unwrap_or(written).to_ascii_lowercase();
        let named = || String::from_utf8_lossy(&domain).into_owned();
        if !self.takes(&domain) {
            return Err(Refusal::OtherHost(named(), self.host.to_string()));
        }
        if !domain.is_empty() && !self.is_ip && psl::suffix(&domain).is_some_and(|suffix| suffix.as_bytes() == domain) {
            return if *domain == *self.host.as_bytes() {
                Ok(Box::default())
            } else {
                Err(Refusal::PublicSuffix(named()))
            };
        }
        Ok(if self.is_ip { Box::default() } else { domain.into() })
    }
}

/// Check a name that promises more: `__Secure-` that the cookie is `Secure`, `__Host-` that it is of the host alone too, and
/// for all of its paths.
pub(crate) fn check_prefix(name: &[u8], secure: bool, of_the_host: bool) -> Result<(), Refusal> {
    let begins = |prefix: &[u8]| name.len() >= prefix.len() && name[..prefix.len()].eq_ignore_ascii_case(prefix);
    match () {
        () if begins(b"__secure-") && !secure => Err(Refusal::SecurePrefix),
        () if begins(b"__host-") && !(secure && of_the_host) => Err(Refusal::HostPrefix),
        () => Ok(()),
    }
}

/// A cookie that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    name: String,
    why: Refusal,
}

impl Dropped {
    pub(crate) fn new(name: &[u8], why: Refusal) -> Self {
        Self { name: in_short(name), why }
    }

    /// How a message names it, with the number of the step that set it.
    #[must_use]
    pub fn of_step(&self, number: usize) -> String {
        format!("the cookie `{}` of step {number} was dropped, as browsers do: {}", self.name, self.why)
    }
}

/// A cookie that was kept and is not sent with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    name: String,
    why: String,
}

impl Unsent {
    pub(crate) fn new(name: &[u8], why: Hindrance<'_>) -> Self {
        let why = match why {
            Hindrance::Expired => "it has expired".to_owned(),
            Hindrance::NotSecure => NOT_SECURE.to_owned(),
            Hindrance::Path(path) => format!("its path is {}", in_short(path)),
        };
        Self { name: in_short(name), why }
    }
}

impl fmt::Display for Unsent {
    /// As it is named in a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cookie `{}` was not sent, as browsers do: {}", self.name, self.why)
    }
}

/// Why a cookie that was kept is not sent with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hindrance<'a> {
    Expired,
    NotSecure,
    Path(&'a [u8]),
}

const NOT_SECURE: &str = "it is Secure, and the connection is neither TLS nor to this machine by its name";

/// A text of a server as a message shows it.
fn in_short(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    String::from_utf8_lossy(text).escape_debug().take(LONGEST).collect()
}

/// Why browsers drop a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Empty,
    Control,
    TooLong,
    TooMany,
    Expired,
    OtherHost(String, String),
    PublicSuffix(String),
    NotSecure,
    SecurePrefix,
    HostPrefix,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it has neither a name nor a value"),
            Self::Control => f.write_str("it has a control character"),
            Self::TooLong => f.write_str("its name and value have more than 4,096 bytes"),
            Self::TooMany => f.write_str("there are 50 cookies already"),
            Self::Expired => f.write_str("it had expired when it came"),
            Self::OtherHost(domain, host) => {
                write!(f, "its Domain is {:.60}, and the host is {host:.60}", domain.escape_debug().to_string())
            }
            Self::PublicSuffix(domain) => {
                write!(
                    f,
                    "its Domain {:.60} is a public suffix, under which others have sites",
                    domain.escape_debug().to_string()
                )
            }
            Self::NotSecure => f.write_str(NOT_SECURE),
            Self::SecurePrefix => f.write_str("a name with __Secure- needs Secure"),
            Self::HostPrefix => f.write_str("a name with __Host- needs Secure, Path=/ and no Domain"),
        }
    }
}

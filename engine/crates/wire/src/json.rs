//! Reads a value in a JSON text without building the whole tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON Pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// A body that is not JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotJson;

impl Pointer {
    /// Parse a pointer: empty for the whole text, otherwise `/` before each step, with `~1` for `/` and `~0` for `~`. `None`
    /// when it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        text.strip_prefix('/')?.split('/').map(unescape).collect::<Option<_>>().map(Self)
    }

    /// The pointer to a member of the whole text.
    pub(crate) fn to(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// The names and places on the path to its value.
    pub(crate) fn steps(&self) -> &[String] {
        &self.0
    }

    /// The value at the pointer as a text: a string's content, and other values as they stand. `None` when there is none or `body`
    /// is not JSON.
    #[must_use]
    pub fn text<'a>(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        let raw = self.find(body)?;
        let Some(quoted) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
            return Some(raw.into());
        };
        if quoted.contains('\\') { serde_json::from_str(raw).ok().map(Cow::Owned) } else { Some(quoted.into()) }
    }

    /// The text of the value at the pointer; `None` when there is none or `body` is not JSON.
    pub(crate) fn find<'a>(&self, body: &'a [u8]) -> Option<&'a str> {
        self.look_up(body).ok().flatten()
    }

    /// The text of the value at the pointer; `None` when there is none.
    pub(crate) fn look_up<'a>(&self, body: &'a [u8]) -> Result<Option<&'a str>, NotJson> {
        let mut json = serde_json::Deserializer::from_slice(body);
        let value = Find(&self.0).deserialize(&mut json).map_err(|_| NotJson)?;
        json.end().map_err(|_| NotJson)?;
        Ok(value)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = self.0.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
        write!(f, "{:?}", escaped.collect::<String>())
    }
}

fn unescape(step: &str) -> Option<String> {
    let escapes_are_right = step.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    // In this order, or `~01` would become `/` (RFC 6901, section 4).
    escapes_are_right.then(|| step.replace("~1", "/").replace("~0", "~"))
}

/// Follows the steps that are left, and skips everything else.
#[derive(Clone, Copy)]
struct Find<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(json).map(|raw: &'de RawValue| Some(raw.get()));
        }
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Find<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        // The last of duplicate names counts, as in most parsers.
        while let Some(is_it) = map.next_key_seed(Is(&self.0[0]))? {
            if is_it {
                value = map.next_value_seed(Find(&self.0[1..]))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let step = &self.0[0];
        let is_canonical = step == "0" || !step.starts_with(['0', '+']);
        let index = step.parse::<usize>().ok().filter(|_| is_canonical);
        let mut value = None;
        for i in 0.. {
            if Some(i) == index {
                let Some(item) = items.next_element_seed(Find(&self.0[1..]))? else {
                    break;
                };
                value = item;
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(value)
    }

    // A pointer into a value without parts points to nothing.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Whether a name equals this, compared without being kept.
struct Is<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

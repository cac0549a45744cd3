//! Finds a value in a JSON text without reading what comes after it: what the messages of a stream are looked at with.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// The bytes of a text from a place on.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The text from the value at these steps on; `None` if there is none. What is no JSON has no values, as far as is seen: only
/// what stands before the value is read. Of duplicate names the first counts.
pub fn seek<'a>(bytes: &'a [u8], steps: &[String]) -> Option<&'a [u8]> {
    let mut scan = Scan { bytes, at: 0 };
    for step in steps {
        match scan.next()? {
            b'{' => scan.member(step)?,
            b'[' => scan.item(step)?,
            _ => return None,
        }
    }
    scan.next()?;
    Some(&bytes[scan.at..])
}

/// Whether a value that begins a text is something: not null, and no empty text, list or object.
pub fn is_something(text: &[u8]) -> bool {
    let after =
        |close: u8| text[1..].iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != close);
    match text {
        [b'"', rest @ ..] => rest.first().is_some_and(|byte| *byte != b'"'),
        [b'[', ..] => after(b']'),
        [b'{', ..] => after(b'}'),
        [b't' | b'f' | b'-' | b'0'..=b'9', ..] => true,
        _ => false,
    }
}

/// The content of the string that begins a text; `None` if none does.
pub fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let mut scan = Scan { bytes: text, at: 0 };
    if scan.next()? != b'"' {
        return None;
    }
    let has_escapes = scan.string()?;
    let quoted = text.get(..scan.at)?;
    if has_escapes {
        return serde_json::from_slice(quoted).ok().map(Cow::Owned);
    }
    std::str::from_utf8(&quoted[1..quoted.len() - 1]).ok().map(Cow::Borrowed)
}

/// The number that begins a text, without its fraction; `None` if it is negative or no number.
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    text.first().is_some_and(u8::is_ascii_digit).then_some(value)
}

impl Scan<'_> {
    /// The next byte that is no white space, which stays the next.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Go from the beginning of an object to the value of this name.
    fn member(&mut self, name: &str) -> Option<()> {
        loop {
            self.at += 1; // `{` or `,`
            if self.next()? != b'"' {
                return None;
            }
            let from = self.at;
            let has_escapes = self.string()?;
            let text = &self.bytes[from..self.at];
            let is_it = if has_escapes {
                serde_json::from_slice::<String>(text).is_ok_and(|text| text == name)
            } else {
                &text[1..text.len() - 1] == name.as_bytes()
            };
            if self.next()? != b':' {
                return None;
            }
            self.at += 1;
            if is_it {
                return Some(());
            }
            self.value()?;
            if self.next()? != b',' {
                return None;
            }
        }
    }

    /// Go from the beginning of a list to this item.
    fn item(&mut self, step: &str) -> Option<()> {
        let is_canonical = step == "0" || !step.starts_with(['0', '+']);
        let mut before = step.parse::<usize>().ok().filter(|_| is_canonical)?;
        self.at += 1;
        if self.next()? == b']' {
            return None;
        }
        while before > 0 {
            self.value()?;
            if self.next()? != b',' {
                return None;
            }
            self.at += 1;
            before -= 1;
        }
        Some(())
    }

    /// Go past a string. Returns whether it has escapes.
    #[inline]
    fn string(&mut self) -> Option<bool> {
        let mut has_escapes = false;
        self.at += 1;
        loop {
            self.at += memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Some(has_escapes);
            }
            has_escapes = true;
            self.at += 2;
        }
    }

    /// Go past a value.
    fn value(&mut self) -> Option<()> {
        match self.next()? {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match *self.bytes.get(self.at)? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                while !matches!(*self.bytes.get(self.at)?, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') {
                    self.at += 1;
                }
            }
        }
        Some(())
    }
}

/// Whether a text may have this name: it stands there as it is, or something is escaped.
pub fn may_have(name: &memchr::memmem::Finder<'_>, text: &[u8]) -> bool {
    name.find(text).is_some() || memchr(b'\\', text).is_some()
}

//! A request as fields and a body, as HTTP/2 sends it.

/// The fields of a request in order, pseudo-fields first (RFC 9113, section 8.3.1), and its body if that varies. It
/// is made to be used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Names and values, in sequence.
    pub(crate) text: Vec<u8>,
    /// Where each name and its value end in `text`.
    ends: Vec<(usize, usize)>,
    pub(crate) body: Vec<u8>,
}

impl Fields {
    /// No fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names, in lower case, and values.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.ends.iter().enumerate().map(|(i, (name_end, end))| {
            let begin = i.checked_sub(1).map_or(0, |before| self.ends[before].1);
            (&self.text[begin..*name_end], &self.text[*name_end..*end])
        })
    }

    /// The body, if it varies; otherwise it is [`crate::Template::fixed_body`].
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.body.clear();
    }

    /// Add a field whose value is what `write` appends.
    pub(crate) fn push(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        write(&mut self.text);
        self.ends.push((name_end, self.text.len()));
    }
}

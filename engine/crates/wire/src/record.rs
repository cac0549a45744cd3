//! The content of an answer, for display.

/// The fields of an answer, the statuses of interim answers before it, and the beginning of its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Statuses of interim answers.
    pub interim: Vec<u16>,
    /// Names in lower case, and values, in the order of arrival; without trailers.
    pub headers: Vec<(String, String)>,
    /// The beginning of the body, up to the number of bytes that are kept.
    pub body: Vec<u8>,
    keeps: usize,
    /// The head of the final answer is complete: later fields are trailers.
    answered: bool,
}

impl Record {
    /// An empty record, which keeps this many bytes of the body.
    #[must_use]
    pub fn new(keeps: usize) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// A field arrived.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if !self.answered {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            self.headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
    }

    /// The fields of an answer or of an interim answer are complete.
    pub fn end_head(&mut self, status: u16) {
        if self.answered {
            return;
        }
        if status < 200 && status != 101 {
            self.interim.push(status);
            self.headers.clear();
        } else {
            self.answered = true;
        }
    }

    /// A piece of the body arrived.
    pub fn data(&mut self, bytes: &[u8]) {
        let room = self.keeps - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// A complete, well-formed HTTP/1.1 head arrived.
    pub fn head(&mut self, bytes: &[u8], status: u16) {
        let mut lines = bytes.split(|byte| *byte == b'\n').skip(1).peekable();
        while let Some(line) = lines.next() {
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
                continue;
            };
            let mut value = value.trim_ascii().to_vec();
            while let Some(more) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
                value.push(b' ');
                value.extend_from_slice(more.trim_ascii());
            }
            self.field(name, value.trim_ascii());
        }
        self.end_head(status);
    }
}

//! The content of a message, which is checked once and rendered as often as it is sent.

use crate::request::{Body, Unsendable};
use crate::template::Content;
use crate::text::{Drawn, Names, Unfit, Values};
use crate::trace::TraceShare;

/// The content of a message.
#[derive(Clone, Debug)]
pub struct Payload(Content);

impl Payload {
    /// Check a content, whose placeholders may have these names.
    ///
    /// # Errors
    /// [`Unsendable`] says which of them cannot be filled in.
    pub fn compile(content: Body, names: &Names<'_>) -> Result<Self, Unsendable> {
        Content::of(content, None, names).map(Self)
    }

    /// The content, if nothing in it varies.
    #[must_use]
    #[inline]
    pub fn fixed(&self) -> Option<&[u8]> {
        match &self.0 {
            Content::Fixed(bytes) => Some(bytes),
            Content::Varying(..) => None,
        }
    }

    /// The share of messages whose trace is sampled; `None` if they have no trace context.
    #[must_use]
    pub fn trace_share(&self) -> Option<TraceShare> {
        self.0.trace_share()
    }

    /// Append the content with values from `values`.
    ///
    /// # Errors
    /// When a value cannot be sent where it stands.
    pub fn render(&self, out: &mut Vec<u8>, values: &mut impl Values) -> Result<(), Unfit> {
        match &self.0 {
            Content::Fixed(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Content::Varying(text, _) => {
                let mut drawn = Drawn::new(values, out.len());
                text.render(out, &mut drawn);
                drawn.result()
            }
        }
    }
}

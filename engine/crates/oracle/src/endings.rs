//! After how many answers the server closes a connection, and whether it says so.

/// What becomes of a connection with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It stays open.
    Open,
    /// It ends, and the answer says so: `Connection: close`, or GOAWAY.
    Said,
    /// It ends without a word.
    Silent,
}

/// The rule of all connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct Endings {
    /// The answers of a connection; more than 0. `None`: it stays open.
    pub after: Option<u64>,
    /// Whether it then ends without a word.
    pub silent: bool,
}

impl Endings {
    /// What becomes of a connection with its `nth` answer, counted from 1.
    #[inline]
    pub fn with(self, nth: u64) -> Ending {
        match self.after {
            Some(after) if nth >= after => {
                if self.silent {
                    Ending::Silent
                } else {
                    Ending::Said
                }
            }
            _ => Ending::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, Endings};

    #[test]
    fn a_connection_ends_with_its_last_answer() {
        let said = Endings { after: Some(2), silent: false };
        assert_eq!([1, 2, 3].map(|nth| said.with(nth)), [Ending::Open, Ending::Said, Ending::Said]);
        assert_eq!(Endings { silent: true, ..said }.with(2), Ending::Silent);
        assert_eq!(Endings::default().with(u64::MAX), Ending::Open);
    }
}

//! What is options, what is answered, and what is no answer.

/// What the parser must know of a request to read its answer, and do with the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The method is HEAD: the answer has no body.
    pub head: bool,
    /// Hash the body.
    pub hash: bool,
    /// Keep the body, to look into it.
    pub keep: bool,
}

/// One complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 999 as a rule; 1xx only for 101. Interim answers are skipped.
    pub status: u16,
    /// The status of gRPC, if it is an answer of gRPC, which HTTP/2 carries; 0 is OK.
    pub grpc_status: Option<u32>,
    /// Bytes of the body, without its transfer coding.
    pub body_length: u64,
    /// SHA-256 of the body, when it was requested.
    pub body_sha256: Option<[u8; 32]>,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
}

/// An answer and how many of the bytes just given belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// The answer.
    pub answer: Answer,
    /// Bytes used; what is left belongs to the next answer, or answers no request.
    pub used: usize,
}

//! The requests of a job as a worker sends them: which is next, its bytes, and whether its answer is correct.

use std::sync::Arc;

use redline_websocket::Kind;
use redline_wire::{Answer, Fields, ReadOptions, Unfit, Verdict};

use super::connection::Connection;
use super::continuing::{HeldBody, Waits};
use super::draws::Draws;
use super::outbox::Tape;
use super::visitors::{VisitorValues, Visitors};
use super::websocket;
use crate::ids::{GlobalWorkerId, PendingId, TapeId};
use crate::job::{Job, Opening, Request, Stream, WebSocket};
use crate::request::DueRequest;

pub struct Scenario {
    job: Arc<Job>,
    tapes: Vec<Tape>,
    scripts: Vec<Script>,
    draws: Draws,
    /// The users of journeys, in a job with a journey.
    visitors: Option<Box<Visitors>>,
    /// Memory for the fields of an HTTP/2 request.
    fields: Fields,
    /// Memory for a message that varies.
    message: Vec<u8>,
    /// When bodies are sent that wait for an answer 100.
    waits: Waits,
}

/// The tapes of the parts of a request that do not vary.
#[derive(Clone, Copy, Default)]
struct Script {
    whole: Option<TapeId>,
    /// Without a body that is kept back, never on a tape of its own.
    head: Option<TapeId>,
    body: Option<TapeId>,
}

/// Why a request cannot be written. Nothing of it was.
pub enum Unwritable {
    /// The connection accepts no request.
    Session(String),
    /// A value of its user is missing, or cannot stand where it should.
    Value(String),
}

impl Unwritable {
    /// Why, in words.
    pub fn words(self) -> String {
        match self {
            Self::Session(why) | Self::Value(why) => why,
        }
    }
}

/// The verdict on an answer, and the server's clock in it, in nanoseconds since 1970.
#[derive(Clone, Copy)]
pub struct Judged {
    pub verdict: Verdict,
    pub clock_ns: Option<u64>,
}

impl Scenario {
    pub fn new(job: &Arc<Job>, worker: GlobalWorkerId) -> Self {
        let mut tapes = Vec::new();
        let mut tape = |bytes: Option<&Arc<[u8]>>| {
            bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| {
                tapes.push(Tape::new(bytes));
                TapeId((tapes.len() - 1) as u32)
            })
        };
        let scripts = job.requests.iter().map(|request| {
            let template = &request.template;
            if request.websocket.is_some() {
                return Script::default();
            }
            match template.fixed() {
                Some(whole) if request.expect_continue_ns.is_some() => {
                    let (head, body) = whole.split_at(head_length(whole));
                    Script { whole: None, head: tape(Some(&head.into())), body: tape(Some(&body.into())) }
                }
                whole => Script { whole: tape(whole), head: None, body: tape(template.fixed_body()) },
            }
        });
        let scripts = scripts.collect();
        Self {
            job: Arc::clone(job),
            tapes,
            scripts,
            draws: Draws::new(job, worker),
            visitors: Visitors::of(job, worker),
            fields: Fields::new(),
            message: Vec::new(),
            waits: Waits::default(),
        }
    }

    pub fn tapes(&self) -> Vec<Tape> {
        self.tapes.clone()
    }

    /// Choose the request to send for a request that is due, and number it. A retry sends the same again.
    #[inline]
    pub fn draw(&mut self, due: &mut DueRequest) -> usize {
        if due.written_ns.is_none() {
            due.seq = self.draws.number();
        }
        self.draws.begin(due.seq);
        if let Some(visitors) = &mut self.visitors {
            return visitors.request_of(due);
        }
        if self.scripts.len() == 1 {
            return 0;
        }
        match &self.job.load.replayed {
            Some(requests) => requests[due.user as usize] as usize,
            None => self.job.weights.pick(self.draws.seed, self.draws.seq),
        }
    }

    /// The index of a request in messages: none in a job of a single request.
    pub fn name_of(&self, request: u32) -> Option<u32> {
        (self.scripts.len() > 1).then_some(request)
    }

    pub fn read_options(&self, request: usize) -> ReadOptions {
        self.job.requests[request].options
    }

    /// The stream of events that the answer to a request is, unless it has another status.
    pub fn stream(&self, request: usize, status: u16) -> Option<Stream> {
        let request = &self.job.requests[request];
        request.stream.filter(|_| request.expect.has_status(status))
    }

    /// The bodies that wait for an answer 100.
    #[inline]
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    pub fn waits_mut(&mut self) -> &mut Waits {
        &mut self.waits
    }

    pub fn visitors(&self) -> Option<&Visitors> {
        self.visitors.as_deref()
    }

    /// The users of journeys, in a job with a journey.
    #[inline]
    pub fn visitors_mut(&mut self) -> Option<&mut Visitors> {
        self.visitors.as_deref_mut()
    }

    /// Put the bytes of a request on a connection.
    ///
    /// # Errors
    /// When the HTTP/2 session refuses it, or a value cannot be sent.
    #[inline]
    pub fn write(
        &mut self,
        request: usize,
        due: &DueRequest,
        pending: PendingId,
        connection: &mut Connection,
        now_ns: u64,
    ) -> Result<(), Unwritable> {
        if let Some(visitors) = &mut self.visitors {
            visitors.attend(due, now_ns).map_err(Unwritable::Value)?;
        }
        if connection.has_layers() {
            if let Some(http2) = connection.http2_mut() {
                return self.open_stream(request, pending, http2);
            }
            if connection.is_websocket() {
                return self.write_message(request, connection);
            }
        }
        let script = self.scripts[request];
        if let Some(whole) = script.whole {
            connection.push_tape(whole, self.tapes[whole.index()].period());
            return Ok(());
        }
        if self.job.requests[request].websocket.is_some() {
            return self.ask_websocket(request, connection);
        }
        if let Some(wait_ns) = self.job.requests[request].expect_continue_ns {
            return self.write_head(request, pending, connection, now_ns.saturating_add(wait_ns));
        }
        let template = &self.job.requests[request].template;
        let draws = &mut self.draws;
        let staged = match self.visitors.as_deref_mut() {
            None => connection.stage(|out| template.render(out, draws)),
            Some(visitors) => connection.stage(|out| template.render(out, &mut VisitorValues { draws, visitors })),
        };
        staged.map_err(|why| Unwritable::Value(why.to_string()))?;
        if let Some(body) = script.body {
            connection.push_tape(body, self.tapes[body.index()].period());
        }
        Ok(())
    }

    /// Put the handshake of a WebSocket on a connection, with its values.
    #[cold]
    fn ask_websocket(&mut self, request: usize, connection: &mut Connection) -> Result<(), Unwritable> {
        let Request { template, websocket, .. } = &self.job.requests[request];
        let varying;
        let opening = if let Some(fixed) = websocket.as_ref().and_then(|websocket| websocket.opening.as_ref()) {
            fixed
        } else {
            self.message.clear();
            let draws = &mut self.draws;
            let rendered = match self.visitors.as_deref_mut() {
                None => template.render(&mut self.message, draws),
                Some(visitors) => template.render(&mut self.message, &mut VisitorValues { draws, visitors }),
            };
            rendered.map_err(|why| Unwritable::Value(why.to_string()))?;
            varying = Opening::Upgrade(Arc::from(self.message.as_slice()));
            &varying
        };
        connection.ask_websocket(opening).map_err(|why| Unwritable::Session(why.to_string()))
    }

    /// The WebSocket of a request.
    pub fn websocket(&self, request: usize) -> Option<&Arc<WebSocket>> {
        self.job.requests[request].websocket.as_ref()
    }

    /// The stream that a request's answer is, of any status.
    pub fn any_stream(&self, request: usize) -> Option<Stream> {
        self.job.requests[request].stream
    }

    /// Put what a user sends who then listens on a WebSocket.
    pub fn write_subscription(
        &mut self,
        request: usize,
        due: &DueRequest,
        connection: &mut Connection,
        now_ns: u64,
    ) -> Result<(), Unwritable> {
        self.draws.begin(due.seq);
        if let Some(visitors) = &mut self.visitors {
            visitors.attend(due, now_ns).map_err(Unwritable::Value)?;
        }
        self.write_message(request, connection)
    }

    /// Put a message on a WebSocket.
    fn write_message(&mut self, request: usize, connection: &mut Connection) -> Result<(), Unwritable> {
        let Some(WebSocket { kind, message, .. }) = self.job.requests[request].websocket.as_deref() else {
            return Err(Unwritable::Value("it is no message".to_owned()));
        };
        if let Some(fixed) = message.fixed() {
            connection.stage_frames(|session, out| session.write(*kind, fixed, out));
            return Ok(());
        }
        self.message.clear();
        let draws = &mut self.draws;
        let rendered = match self.visitors.as_deref_mut() {
            None => message.render(&mut self.message, draws),
            Some(visitors) => message.render(&mut self.message, &mut VisitorValues { draws, visitors }),
        };
        rendered.map_err(|why| Unwritable::Value(why.to_string()))?;
        if *kind == Kind::Text && self.visitors.is_some() && std::str::from_utf8(&self.message).is_err() {
            let why = "the message is a text, and is not UTF-8 with this value (RFC 6455, 5.6)";
            return Err(Unwritable::Value(why.to_owned()));
        }
        connection.stage_frames(|session, out| session.write(*kind, &self.message, out));
        Ok(())
    }

    /// How the message that answers a message differs from what is expected; `None` if it does not.
    pub fn difference_of_message(
        &mut self,
        request: usize,
        due: &DueRequest,
        kind: Kind,
        payload: &[u8],
    ) -> Option<String> {
        let sent = self.job.requests[request].websocket.as_deref().filter(|websocket| websocket.is_echoed)?;
        if let Some(fixed) = sent.message.fixed() {
            return websocket::difference((sent.kind, fixed), (kind, payload));
        }
        // The values depend only on the number of the message, so that it need not be kept.
        self.draws.begin(due.seq);
        self.message.clear();
        match sent.message.render(&mut self.message, &mut self.draws) {
            Ok(()) => websocket::difference((sent.kind, &self.message), (kind, payload)),
            Err(why) => Some(why.to_string()),
        }
    }

    /// Put the head of a request on a connection, which keeps the body until an answer 100, or until this time.
    #[cold]
    fn write_head(
        &mut self,
        request: usize,
        pending: PendingId,
        connection: &mut Connection,
        until_ns: u64,
    ) -> Result<(), Unwritable> {
        let script = self.scripts[request];
        let mut own = Vec::new();
        if let Some(head) = script.head {
            connection.push_tape(head, self.tapes[head.index()].period());
        } else {
            let template = &self.job.requests[request].template;
            let draws = &mut self.draws;
            let rendered = match self.visitors.as_deref_mut() {
                None => template.render(&mut own, draws),
                Some(visitors) => template.render(&mut own, &mut VisitorValues { draws, visitors }),
            };
            rendered.map_err(|why| Unwritable::Value(why.to_string()))?;
            let length = head_length(&own);
            connection
                .stage(|out| {
                    out.extend(own.drain(..length));
                    Ok(())
                })
                .map_err(|why: Unfit| Unwritable::Value(why.to_string()))?;
        }
        let tape = script.body.map(|body| (body, self.tapes[body.index()].period()));
        connection.hold(HeldBody::new(self.waits.begin(pending, until_ns), own, tape));
        Ok(())
    }

    fn open_stream(
        &mut self,
        request: usize,
        pending: PendingId,
        http2: &mut redline_http2::Session,
    ) -> Result<(), Unwritable> {
        let ReadOptions { hash, keep, fields, events, messages, .. } = self.job.requests[request].options;
        let options = redline_http2::BodyOptions { hash, keep, fields, events, messages };
        let template = &self.job.requests[request].template;
        let body = template.fixed_body().cloned();
        let opened = if let Some(fields) = template.fixed_fields() {
            open(http2, fields, body, options, pending.0)
        } else {
            let (fields, draws) = (&mut self.fields, &mut self.draws);
            let rendered = match self.visitors.as_deref_mut() {
                None => template.render_fields(fields, draws),
                Some(visitors) => template.render_fields(fields, &mut VisitorValues { draws, visitors }),
            };
            rendered.map_err(|why| Unwritable::Value(why.to_string()))?;
            let varying = fields.body();
            let body = body.or_else(|| (!varying.is_empty()).then(|| varying.into()));
            open(http2, fields, body, options, pending.0)
        };
        opened.map_err(|error| Unwritable::Session(error.to_string()))
    }

    /// Compare an answer with the expected answer.
    #[inline]
    pub fn judge(&self, request: usize, answer: &Answer, body: &[u8]) -> Judged {
        let request = &self.job.requests[request];
        let verdict = request.expect.judge(answer, body);
        match &request.timestamp {
            Some(timestamp) if verdict == Verdict::Right => {
                let clock_ns = timestamp.read(body);
                Judged { verdict: if clock_ns.is_some() { verdict } else { Verdict::WrongBody }, clock_ns }
            }
            _ => Judged { verdict, clock_ns: None },
        }
    }

    /// The `errors` in a right answer that are looked for, in words.
    #[inline]
    pub fn watched_errors(&self, request: usize, body: &[u8]) -> Option<String> {
        self.job.requests[request].expect.watched_errors(body)
    }

    /// How an answer differs from the expected answer, in words.
    pub fn difference(&self, request: usize, answer: &Answer, body: &[u8]) -> String {
        let request = &self.job.requests[request];
        let difference = request.expect.difference(answer, body);
        difference.unwrap_or_else(|| "the body has no time where the request says".to_owned())
    }
}

/// The length of the head of an HTTP/1.1 request, whose lines and values have no other blank line.
fn head_length(request: &[u8]) -> usize {
    const BLANK_LINE: &[u8] = b"\r\n\r\n";
    let end = request.windows(BLANK_LINE.len()).position(|bytes| bytes == BLANK_LINE);
    end.map_or(request.len(), |end| end + BLANK_LINE.len())
}

/// Open a stream without allocating, unless there are many fields.
fn open(
    http2: &mut redline_http2::Session,
    fields: &Fields,
    body: Option<Arc<[u8]>>,
    options: redline_http2::BodyOptions,
    token: u32,
) -> Result<(), redline_http2::Error> {
    const MOST: usize = 32;
    let mut few: [(&[u8], &[u8]); MOST] = [(&[], &[]); MOST];
    let count = fields.iter().len();
    if count > MOST {
        return http2.open(&fields.iter().collect::<Vec<_>>(), body, options, token);
    }
    for (place, field) in few.iter_mut().zip(fields.iter()) {
        *place = field;
    }
    http2.open(&few[..count], body, options, token)
}

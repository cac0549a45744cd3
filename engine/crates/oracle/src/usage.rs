//! The text of `--help`.

/// The text of `--help`.
pub const USAGE: &str = "\
redline-oracle: a server with known answers

Usage: redline-oracle MODE [OPTIONS]

Modes: when an answer is ready
  null                                 at once: the ceiling of this machine
  fixed --delay D                      D after the request's arrival, all in parallel
  stall --every T --for S              at once, but what arrives in [kT, kT+S) is ready at kT+S
  exponential --rate MU                after its turn in a queue and an exponential service, MU per second: M/M/1
  deterministic --service D            after its turn in a queue and a service of D: M/D/1
  bimodal --fast D --slow D --share P  after its turn in a queue and a service of `slow` with probability P, else `fast`
  lognormal --median D --sigma S       after its turn in a queue and a service of D * exp(S * Z), Z standard normal

Modes with a queue (they have one thread and one process):
  --servers K           workers that serve the queue, first come, first served (1)
  --seed S              of the service times (1)

Listening:
  --host H              address to listen on (127.0.0.1)
  --port P              port to listen on; 0 takes a free one (0)
  --threads N           threads of each process, each with a listener of its own (1)
  --processes N         processes that share the port, for more connections than one may hold; they end with the first (1)
  --connections-at-most N
                        further connections are accepted and closed at once; with one process

Answers: GET /X is answered with X, POST /X with X and the length of the body that came; a GET that asks for a WebSocket
opens one, with the first subprotocol that is offered, and each message is echoed when its answer is ready
  --body-bytes N        N times the letter x instead, at most 1 GiB
  --work STEPS          each costs so many dependent multiplications of CPU time too
  --server-time UNIT    the wall clock at the request's arrival instead, in whole s, ms, us or ns since 1970
  --skew D              how far that clock is ahead; negative when it is behind (0s)
  --server-time-json    the same as {\"now\":N}
  --sessions            `POST /login` begins a session of the user whom its body names, with a cookie `sid` and
                        {\"token\":T}, both new (seed: --seed); all else is answered only with that cookie and `X-Token: T`:
                        without a session with 401, with a wrong token with 403
  --session-requests N  a session ends after N answers
  --events N --event-gap D
                        N server-sent events instead, each D after the one before it, the first D after the head
  --ndjson              they are lines of JSON
  --tokens              they are a chat completion: the role, N - 3 tokens, their number, [DONE]
  --pushes N --push-every D [--push-delay D]
                        a WebSocket echoes nothing, and gets N texts, each D after the one before it, the first D after the
                        handshake; each is the time at which it is due, less the delay, in ns since 1970
  --deflate PARAMETERS  compresses messages of WebSockets whose clients offer it, by these parameters of
                        permessage-deflate (RFC 7692)
  --close-after N       the Nth answer of a connection is its last, and says so: `Connection: close`, or GOAWAY
  --close-silently      it does not say so

Faults; times add to those of the mode
  --first-byte-after D  an answer's first byte leaves D after it is ready
  --body-over D         its body leaves in up to 64 even pieces, the last D after the first byte of the head
  --rest-after D        its head and half of its body leave at once, the rest D later
  --bytewise            each byte is written alone
  --reset-share P       an answer is, with probability P, a reset of its connection (seed: --seed)
  --pause-every T --pause-for S [--pause-after A]
                        the server is stopped (SIGSTOP) from A + kT after its start for S, k = 0, 1, ... (A: T); what
                        happened is written to standard error in nanoseconds since 1970

Durations are written 250us, 5ms, 1.5s. SIGTERM and SIGINT end the server; where answers waited for a time it then says how
late it was itself. With --report it says in a line of JSON what it counted (connections, requests by target and by user,
answers by status, bytes of the requests' bodies, requests passed over after the last answer of a connection) and when the
first and the last bytes of answers left, from the arrival of their requests. HTTP/2 is spoken to clients that begin with it
(no TLS).
";

//! Events, one a line, on standard output.

use std::io::{self, Write};

use redline_traffic::Event;

use crate::sys::process::end_now;

/// Write one event. Nobody reads any more, or nothing can be written: then there is no reason to go on.
pub fn tell(event: &Event<'_>) {
    if let Err(error) = write(event) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            let _ = writeln!(io::stderr(), "redline-engine: cannot write to standard output: {error}");
        }
        end_now(1);
    }
}

fn write(event: &Event<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

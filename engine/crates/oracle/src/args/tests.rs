use super::{Command, Options, parse};
use crate::content::Content;
use crate::discipline::Discipline;
use crate::usage::USAGE;

fn read(line: &str) -> Result<Command, String> {
    parse(line.split_whitespace().map(String::from))
}

fn options(line: &str) -> Options {
    match read(line) {
        Ok(Command::Serve(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn reads_each_mode() {
    let null = options("null --port 8080 --threads=2 --host ::1");
    assert!(matches!(null.behaviour.discipline, Discipline::Null));
    assert_eq!((null.address.to_string().as_str(), null.threads, null.processes), ("[::1]:8080", 2, 1));
    let fixed = options("fixed --delay 1.5ms");
    assert!(matches!(fixed.behaviour.discipline, Discipline::Fixed { delay_ns: 1_500_000 }));
    assert_eq!(fixed.address.to_string(), "127.0.0.1:0");
    assert!(matches!(
        options("stall --for 100ms --every 1s").behaviour.discipline,
        Discipline::Stall { every_ns: 1_000_000_000, for_ns: 100_000_000 }
    ));
    for queue in [
        "exponential --rate 1000 --seed 3",
        "deterministic --service 1ms --servers 4",
        "bimodal --fast 100us --slow 10ms --share 0.05 --seed 3 --servers 2",
        "lognormal --median 1ms --sigma 0.5",
    ] {
        assert!(matches!(options(queue).behaviour.discipline, Discipline::Queue(_)), "{queue}");
    }
}

#[test]
fn reads_faults_and_answers() {
    let faults =
        options("null --first-byte-after 1ms --body-over=2ms --bytewise --reset-share 0.5 --seed 7").behaviour.faults;
    assert_eq!((faults.first_byte_after_ns, faults.body_over_ns, faults.bytewise), (1_000_000, 2_000_000, true));
    assert!(matches!(options("null --body-bytes 10").behaviour.content, Content::Bytes(bytes) if bytes.len() == 10));
    let content = options("null --server-time ms --skew -5ms --server-time-json").behaviour.content;
    assert!(matches!(content, Content::Time(_)));
    assert_eq!(options("null --work 100").behaviour.work, 100);
    assert_eq!(options("null").behaviour.work, 0);
    assert_eq!(options("null --connections-at-most 0").connections_at_most, Some(0));
    let answers =
        options("null --sessions --session-requests 9 --close-after 3 --close-silently --report --rest-after 1s");
    assert_eq!((answers.behaviour.endings.after, answers.behaviour.endings.silent), (Some(3), true));
    assert!(matches!(answers.behaviour.content, Content::Sessions(_)) && answers.behaviour.report.is_some());
    assert_eq!(answers.behaviour.faults.rest_after_ns, 1_000_000_000);
    let stream = options("fixed --delay 1ms --events 20 --event-gap 2ms --ndjson").behaviour;
    assert!(matches!(stream.content, Content::Events("application/x-ndjson", 20, _)));
    assert!(stream.faults.events.is_some_and(|events| (events.count, events.gap_ns) == (20, 2_000_000)));
    let pushes = options("null --pushes 600 --push-every 100ms --push-delay 2ms").behaviour.pushes;
    let times = pushes.map(|pushes| (pushes.count, pushes.every_ns, pushes.delay_ns));
    assert_eq!(times, Some((600, 100_000_000, 2_000_000)));
    assert_eq!(options("null --processes 3 --threads 2").processes, 3);
    assert!(options("null --pause-every 1s --pause-for 100ms --pause-after 0s").pauses.is_some());
}

#[test]
fn says_what_is_wrong() {
    for (line, message) in [
        ("", "which mode"),
        ("nul", "unknown mode"),
        ("null --delay 5ms", "null has no option --delay"),
        ("null --seed 5", "null has no option --seed"),
        ("null --servers 5", "null has no option --servers"),
        ("fixed --delay 1ms --servers 5", "fixed has no option --servers"),
        ("null --port", "--port needs a value"),
        ("null --port 70000", "--port 70000: not a number in range"),
        ("null --port 1 --port 2", "given twice"),
        ("null --host localhost", "not an IP address"),
        ("null --threads 0", "--threads 0: not from 1 to 4096"),
        ("null --processes 0", "--processes 0: not from 1 to 4096"),
        ("null --processes 2 --connections-at-most 5", "one process"),
        ("fixed", "fixed needs --delay D"),
        ("fixed --delay 5", "not a duration"),
        ("fixed --delay -5ms", "not a duration"),
        ("exponential", "needs --rate MU"),
        ("exponential --rate 0", "not between"),
        ("exponential --rate nan", "not between"),
        ("exponential --rate 10 --threads 2", "one thread"),
        ("deterministic --service 1ms --processes 2", "one process"),
        ("deterministic --service 1ms --servers 0", "not from 1"),
        ("bimodal --fast 1ms --slow 2ms", "bimodal needs --share P"),
        ("bimodal --fast 1ms --slow 2ms --share 1.5", "not from 0 to 1"),
        ("lognormal --median 0s --sigma 1", "not more than 0"),
        ("lognormal --median 1ms --sigma 9", "not between 0 and 5"),
        ("stall --every 1s --for 1s", "less than --every"),
        ("stall --every 1s", "needs --for S"),
        ("null --body-over 1ms --rest-after 1ms", "either --body-over"),
        ("null --close-silently", "--close-silently needs --close-after N"),
        ("null --close-after 0", "--close-after 0: not from 1"),
        ("null --session-requests 5", "--session-requests needs --sessions"),
        ("null --sessions --body-bytes 5", "either --body-bytes or that of --sessions"),
        ("null --sessions --processes 2", "--sessions are those of one process"),
        ("null --report --processes 2", "--report counts in the first process"),
        ("null --report --pause-every 1s --pause-for 1ms", "--report counts in the first process"),
        ("null --bytewise=1", "--bytewise has no value"),
        ("null --reset-share nan", "not from 0 to 1"),
        ("null --skew 1ms", "--skew needs --server-time"),
        ("null --server-time-json", "--server-time-json needs --server-time"),
        ("null --server-time h", "not s, ms, us or ns"),
        ("null --server-time s --body-bytes 3", "either --body-bytes or --server-time"),
        ("null --body-bytes 2000000000", "more than 1 GiB"),
        ("null --push-every 1s", "--push-every needs --pushes N"),
        ("null --pushes 20001 --push-every 1s", "at most 20000"),
        ("null --pause-for 1s", "--pause-for needs --pause-every T"),
        ("null --pause-every 1s --pause-for 1s", "less than --pause-every"),
    ] {
        let error = read(line).err().unwrap_or_default();
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn gives_help_and_version() {
    assert!(matches!(read("--help"), Ok(Command::Help)));
    assert!(matches!(read("fixed --help"), Ok(Command::Help)));
    assert!(matches!(read("--version"), Ok(Command::Version)));
}

#[test]
fn the_usage_names_every_mode() {
    for mode in super::MODES {
        assert!(USAGE.contains(&format!("\n  {mode} ")), "{mode}");
    }
    assert!(USAGE.lines().all(|line| line.len() <= 128));
}

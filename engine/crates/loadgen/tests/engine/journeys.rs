//! Journeys: steps in order, with values from answers, cookies, rows, think times, conditions and `once`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use h2::server::Builder;
use serde_json::{Value, json};

use crate::parts;
use crate::support::engine::limit_open_files;
use crate::support::http2::{Act, Http2Server, Received};
use crate::support::server::{Request, Server};
use crate::support::{Engine, EngineOutput, Outcome, complete, histogram, job, open_job, run, with};

type Record = Arc<Mutex<Vec<Request>>>;

/// A shop. `/login` gives a cookie and a token, both of which hold for `uses` requests; every other path wants them, and
/// answers 401 without. `/slow` takes 5 ms, `/wrong` is 500, `/maybe` is 304 every second time.
struct Shop {
    server: Server,
    record: Record,
    logins: Arc<AtomicU64>,
}

impl Shop {
    fn open(uses: u64) -> Self {
        let (record, logins) = (Record::default(), Arc::new(AtomicU64::new(0)));
        let (kept, given, left) = (Arc::clone(&record), Arc::clone(&logins), Mutex::new(HashMap::new()));
        let maybes = AtomicU64::new(0);
        let server = Server::start(move |mut peer, _| {
            while let Some(request) = peer.whole_request()? {
                kept.lock().unwrap().push(request.clone());
                let (mut status, mut extra, mut body) = ("200 OK", String::new(), String::new());
                match request.path.as_str() {
                    "/login" => {
                        let session = given.fetch_add(1, Ordering::SeqCst);
                        left.lock().unwrap().insert(session.to_string(), uses);
                        extra = format!("Set-Cookie: sid={session}; Path=/; HttpOnly\r\nX-Session: s{session}\r\n");
                        body = format!(r#"{{"token": "t/{session}"}}"#);
                    }
                    "/wrong" => status = "500 Oops",
                    path => {
                        let session = request.header("Cookie").and_then(|cookie| cookie.strip_prefix("sid="));
                        let token = request.header("Authorization").and_then(|value| value.strip_prefix("Bearer t/"));
                        let mut left = left.lock().unwrap();
                        match session.filter(|session| token == Some(*session)).and_then(|id| left.get_mut(id)) {
                            Some(left @ 1..) => *left -= 1,
                            _ => status = "401 No",
                        }
                        drop(left);
                        if status == "200 OK" && path == "/maybe" && maybes.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                            status = "304 Same";
                        }
                        if path == "/slow" {
                            thread::sleep(Duration::from_millis(5));
                        }
                        body = format!("<input name=\"csrf\" value=\"c{}\">", request.path.len());
                    }
                }
                if status == "304 Same" {
                    peer.say("HTTP/1.1 304 Same\r\n\r\n")?;
                } else {
                    peer.say(&format!("HTTP/1.1 {status}\r\n{extra}Content-Length: {}\r\n\r\n{body}", body.len()))?;
                }
            }
            Ok(())
        });
        Self { server, record, logins }
    }

    fn asked(&self) -> Vec<Request> {
        std::mem::take(&mut *self.record.lock().unwrap())
    }

    fn logins(&self) -> u64 {
        self.logins.load(Ordering::SeqCst)
    }
}

fn login() -> Value {
    json!({"method": "POST", "path": "/login", "body_text": "{row:name}", "expect": {"status": 200}})
}

fn get(path: &str) -> Value {
    json!({"method": "GET", "path": path, "headers": [["Authorization", "Bearer {take:token}"]],
           "expect": {"status": [200, 304]}})
}

fn token() -> Value {
    json!([{"name": "token", "from": {"json": "/token"}}])
}

/// A journey of a login and these paths.
fn shopping(job: Value, paths: &[&str], rows: &str) -> Value {
    let requests: Vec<_> = std::iter::once(login()).chain(paths.iter().map(|path| get(path))).collect();
    let steps: Vec<_> = (0..requests.len())
        .map(|i| if i == 0 { json!({"request": 0, "take": token()}) } else { json!({"request": i}) })
        .collect();
    let values: Vec<_> = (0..40).map(|i| json!([format!("user{i}")])).collect();
    let rows = json!({"columns": ["name"], "values": values, "use": rows});
    with(with(job, "/requests", json!(requests)), "/journey", json!({"steps": steps, "rows": rows, "cookies": true}))
}

/// The same, where the login is done once.
fn member(job: Value, paths: &[&str]) -> Value {
    let mut job = shopping(job, paths, "user");
    let first = job["journey"]["steps"].as_array_mut().unwrap().remove(0);
    job["journey"]["once"] = json!([first]);
    job["journey"]["again_at"] = json!([401]);
    job
}

/// This many journeys without a warm-up.
fn counted(job: Value, count: u64) -> Value {
    let job = with(with(job, "/warmup_ns", json!(0)), "/count", json!(count));
    with(job, "/measure_ns", json!(20_000_000_000_u64))
}

fn of(result: &Outcome, key: &str) -> u64 {
    result.event["journeys"][key].as_u64().unwrap()
}

fn list(result: &Outcome, key: &str) -> Vec<u64> {
    result.event["journeys"][key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

/// What holds of every result with a journey.
fn adds_up(result: &Outcome) {
    let abandoned: u64 = list(result, "abandoned").iter().sum();
    assert_eq!(of(result, "due"), of(result, "completed") + abandoned + of(result, "unfinished"), "{:#}", result.event);
    assert_eq!(histogram(&result.event["journeys"], "response").count(), of(result, "completed"));
}

const BACKENDS: [&str; 2] = ["epoll", "io_uring"];

#[test]
fn users_take_the_steps_in_order_with_their_own_values() {
    for backend in BACKENDS {
        let shop = Shop::open(3);
        let base = with(with(job(shop.server.port), "/load/closed/users", json!(3)), "/workers", json!(2));
        let job = counted(shopping(with(base, "/backend", json!(backend)), &["/a", "/b", "/c"], "turn"), 30);
        let result = complete(&job);
        result.are_all("ok");
        adds_up(&result);
        assert_eq!((of(&result, "due"), of(&result, "completed")), (30, 30));
        assert_eq!(result.count("due"), 120);
        let requests = result.event["requests"].as_array().unwrap();
        assert!(requests.iter().all(|request| request["outcomes"]["ok"] == 30), "{requests:#?}");
        let asked = shop.asked();
        for session in 0..30 {
            let cookie = format!("sid={session}");
            let own = asked.iter().filter(|r| r.header("Cookie") == Some(&cookie));
            assert_eq!(own.map(|r| r.path.as_str()).collect::<Vec<_>>(), ["/a", "/b", "/c"]);
        }
        // Each journey is of a new visitor, with the next row.
        assert!(asked.iter().filter(|r| r.path == "/login").all(|r| r.header("Cookie").is_none()));
        let names: HashSet<_> = asked.iter().filter(|r| r.path == "/login").map(|r| r.body.clone()).collect();
        assert_eq!(names.len(), 30);
    }
}

#[test]
fn a_wrong_step_ends_its_journey() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/a", "/wrong", "/never"], "turn"), 20);
    job["requests"][2]["expect"] = json!({"status": 200});
    let result = complete(&job);
    adds_up(&result);
    assert_eq!((list(&result, "abandoned"), of(&result, "completed")), (vec![0, 0, 20, 0], 0));
    assert_eq!(result.outcome("unexpected_status"), 20);
    assert!(shop.asked().iter().all(|request| request.path != "/never"));
    assert_eq!(result.event["failures"][0]["request"], 2, "{:#}", result.event["failures"]);
}

#[test]
fn a_missing_value_ends_the_journey_of_the_step_that_should_give_it() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/a", "/b"], "turn"), 4);
    job["journey"]["steps"][1]["take"] = json!([
        {"name": "csrf", "from": {"regex": "name=\"csrf\" value=\"(c[0-9]+)\""}},
        {"name": "gone", "from": {"header": "X-Gone"}}]);
    let result = complete(&job);
    adds_up(&result);
    assert_eq!(list(&result, "abandoned"), [0, 4, 0]);
    let failure = &result.event["failures"][0];
    assert_eq!((failure["outcome"].as_str(), failure["request"].as_u64()), (Some("unexpected_body"), Some(1)));
    assert_eq!(failure["reason"], "no value at the header x-gone for `gone`");
}

#[test]
fn values_of_all_kinds_reach_later_requests() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/a", "/b"], "turn"), 1);
    job["journey"]["steps"][0]["take"] = json!([
        {"name": "token", "from": {"json": "/token"}}, {"name": "sid", "from": {"cookie": "sid"}},
        {"name": "session", "from": {"header": "x-session"}}]);
    job["journey"]["steps"][1]["take"] = json!([{"name": "csrf", "from": {"regex": "value=\"(.*?)\""}}]);
    job["requests"][2] = json!({"method": "POST", "path": "/b?at={take:token}&x={row:name}",
        "headers": [["Authorization", "Bearer {take:token}"], ["X-Seen", "{take:sid} {take:session}"]],
        "body_text": "{take:csrf}={take:token}", "body_escape": "form", "expect": {"status": 200}});
    complete(&job).are_all("ok");
    let last = shop.asked().pop().unwrap();
    assert_eq!((last.path.as_str(), last.header("X-Seen")), ("/b?at=t%2F0&x=user0", Some("0 s0")));
    assert_eq!(String::from_utf8_lossy(&last.body), "c2=t%2F0");
}

#[test]
fn what_users_do_once_is_done_before_and_at_a_status() {
    for backend in BACKENDS {
        // After a login, a user may send six requests.
        let shop = Shop::open(6);
        let base = with(with(job(shop.server.port), "/load/closed/users", json!(3)), "/workers", json!(2));
        let job = counted(member(with(base, "/backend", json!(backend)), &["/a", "/b"]), 30);
        let result = complete(&job);
        result.are_all("ok");
        adds_up(&result);
        assert_eq!((of(&result, "completed"), of(&result, "due")), (30, 30));
        // Three before the load, and one for each 401.
        let again = of(&result, "again");
        assert!((5..=9).contains(&again) && shop.logins() == 3 + again, "{again} {}", shop.logins());
        assert_eq!(result.event["counts"]["status"]["4xx"], again);
        assert_eq!(result.count("due"), 60 + 2 * again);
        let names: HashSet<_> = shop.asked().iter().filter(|r| r.path == "/login").map(|r| r.body.clone()).collect();
        assert_eq!(names, ["user0", "user1", "user2"].map(|name| name.as_bytes().to_vec()).into());
    }
}

#[test]
fn a_status_that_comes_again_is_wrong() {
    let shop = Shop::open(0);
    let job = counted(member(job(shop.server.port), &["/a"]), 6);
    let result = complete(&job);
    adds_up(&result);
    assert_eq!((list(&result, "abandoned"), of(&result, "again")), (vec![0, 6], 6));
    assert_eq!(result.outcome("unexpected_status"), 6);
}

#[test]
fn a_failure_of_once_is_an_error_that_names_it() {
    let shop = Shop::open(1);
    let mut job = member(job(shop.server.port), &["/a"]);
    job["requests"][0]["expect"] = json!({"status": 201});
    let output = run(&job);
    let error = output.error();
    assert_eq!((output.code, error["kind"].as_str()), (Some(1), Some("connect")));
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("could not take `once`: requests[0]: status 200 in place of 201"), "{message}");
}

#[test]
fn steps_with_a_condition_are_skipped_without() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/maybe", "/new", "/end"], "turn"), 20);
    job["load"] = json!({"closed": {"users": 1}});
    job["journey"]["steps"][2]["when"] = json!({"step": 1, "status": [200]});
    let result = complete(&job);
    result.are_all("ok");
    adds_up(&result);
    assert_eq!((list(&result, "skipped"), of(&result, "completed")), (vec![0, 0, 10, 0], 20));
    let count = |path| shop.record.lock().unwrap().iter().filter(|request| request.path == path).count();
    assert_eq!([count("/maybe"), count("/new"), count("/end")], [20, 10, 20]);
}

#[test]
fn think_times_within_a_journey_are_kept_and_not_counted() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/slow", "/b"], "turn"), 4);
    job["load"] = json!({"closed": {"users": 2}});
    job["journey"]["steps"][2]["think"] = json!({"fixed_ns": 300_000_000});
    let result = complete(&job);
    result.are_all("ok");
    adds_up(&result);
    let response = histogram(&result.event["journeys"], "response");
    assert!((5_000_000..300_000_000).contains(&response.quantile_ns(0.5)), "{}", response.quantile_ns(0.5));
    // At least two journeys of a user, of 305 ms.
    let took_ns = result.event["measure_end_ns"].as_u64().unwrap() - result.event["measure_start_ns"].as_u64().unwrap();
    assert!(took_ns >= 610_000_000, "{took_ns}");
}

#[test]
fn rows_that_are_used_once_end_the_load() {
    let shop = Shop::open(9);
    let job = shopping(with(job(shop.server.port), "/load/closed/users", json!(3)), &["/a"], "unique");
    let job = with(with(job, "/warmup_ns", json!(0)), "/measure_ns", json!(20_000_000_000_u64));
    let result = complete(&with(job.clone(), "/workers", json!(2)));
    result.are_all("ok");
    adds_up(&result);
    assert_eq!((of(&result, "completed"), &result.event["journeys"]["rows_used_up"]), (40, &json!(true)));
    let names: HashSet<_> = shop.asked().into_iter().filter(|r| r.path == "/login").map(|r| r.body).collect();
    assert_eq!(names.len(), 40);
    // A worker without rows ends as well.
    let job = with(with(job, "/journey/rows/values", json!([["last"]])), "/workers", json!(2));
    assert_eq!(of(&complete(&job), "completed"), 1);
}

#[test]
fn open_journeys_begin_at_their_rate() {
    for backend in BACKENDS {
        let shop = Shop::open(9);
        let job = shopping(open_job(shop.server.port, 100, 4), &["/slow", "/b"], "turn");
        let mut job = with(with(job, "/warmup_ns", json!(50_000_000)), "/backend", json!(backend));
        job["journey"]["steps"][2]["think"] = json!({"exponential_ns": 20_000_000});
        let result = complete(&job);
        result.are_all("ok");
        adds_up(&result);
        assert_eq!(of(&result, "due"), 30);
        assert!(of(&result, "unfinished") < 12, "{:#}", result.event["journeys"]);
    }
}

#[test]
fn open_journeys_of_members_wait_for_a_free_one() {
    let shop = Shop::open(1000);
    // A journey takes at least 40 ms, and ten begin in that time.
    let mut job = member(open_job(shop.server.port, 250, 2), &["/a", "/b"]);
    job["journey"]["users"] = json!(3);
    job["journey"]["steps"][1]["think"] = json!({"fixed_ns": 40_000_000});
    let result = complete(&with(job, "/warmup_ns", json!(0)));
    adds_up(&result);
    assert_eq!(shop.logins(), 3);
    assert_eq!(of(&result, "due"), 75);
    // In 300 ms, and none in the drain.
    assert!((15..=24).contains(&of(&result, "completed")), "{:#}", result.event["journeys"]);
    assert!(result.outcome("unsent") > 40, "{:#}", result.event["counts"]);
    let first = &result.event["requests"][1];
    assert!(histogram(first, "response").quantile_ns(0.5) > 50_000_000);
}

#[test]
fn users_who_leave_end_their_journeys() {
    let shop = Shop::open(9);
    let mut job = shopping(job(shop.server.port), &["/a", "/b"], "turn");
    job["load"] =
        json!({"closed": {"users": 6, "stages": [{"to": 6, "over_ns": 100_000_000}, {"to": 2, "over_ns": 0}]}});
    job["journey"]["steps"][1]["think"] = json!({"fixed_ns": 30_000_000});
    let result = complete(&job);
    result.are_all("ok");
    adds_up(&result);
    assert!((4..=6).contains(&of(&result, "unfinished")), "{:#}", result.event["journeys"]);
}

#[test]
fn journeys_of_a_duet_go_on_from_slice_to_slice() {
    let (one, other) = (Shop::open(1000), Shop::open(1000));
    let mut job = member(with(job(one.server.port), "/load/closed/users", json!(2)), &["/a", "/b", "/c"]);
    // Much longer than a slice.
    job["journey"]["steps"][1]["think"] = json!({"fixed_ns": 150_000_000});
    job["duet"] = json!({"targets": [{"host": "127.0.0.1", "port": other.server.port}], "slice_ns": 10_000_000,
                         "guard_ns": 1_000_000});
    job["warmup_ns"] = json!(100_000_000);
    job["measure_ns"] = json!(1_500_000_000);
    let output = run(&job);
    let last = output.events.last().unwrap();
    assert_eq!((output.code, last["event"].as_str()), (Some(0), Some("duet")), "{last:#}");
    for target in last["targets"].as_array().unwrap() {
        let result = Outcome { event: target.clone() };
        adds_up(&result);
        assert_eq!(target["counts"]["outcomes"]["ok"], target["counts"]["due"]);
        // Slices in which a worker stood still do not count.
        assert!(of(&result, "completed") >= 3, "{:#}", target["journeys"]);
        let response = histogram(&target["journeys"], "response");
        assert!(response.quantile_ns(0.5) < 150_000_000, "{}", response.quantile_ns(0.5));
    }
    assert_eq!((one.logins(), other.logins()), (2, 2));
}

#[test]
fn what_journeys_cannot_do_is_refused_by_name() {
    let good = shopping(job(1), &["/a"], "turn");
    let once = member(job(1), &["/a"]);
    let open = |job: &Value| with(job.clone(), "/load", open_job(1, 10, 2)["load"].clone());
    let replay = json!({"open": {"arrivals": {"replayed_ns": [0]}, "connections": 1}});
    let cases = [
        (with(good.clone(), "/load/closed", json!({"users": 2, "depth": 2})), "load.closed.depth"),
        (with(good.clone(), "/load", replay), "load.open.arrivals"),
        (with(good.clone(), "/requests/0/weight", json!(2)), "requests[0].weight"),
        (with(good.clone(), "/journey/steps", json!([])), "journey.steps"),
        (with(good.clone(), "/journey/steps/1/request", json!(7)), "journey.steps[1].request"),
        (with(good.clone(), "/journey/steps/0/think", json!({"fixed_ns": 1})), "journey.steps[0].think"),
        (
            with(good.clone(), "/journey/steps/1/when", json!({"step": 1, "status": [200]})),
            "journey.steps[1].when.step",
        ),
        (with(good.clone(), "/journey/steps/1/when", json!({"step": 0, "status": []})), "journey.steps[1].when.status"),
        (
            with(good.clone(), "/journey/steps/0/take/0/from", json!({"regex": "("})),
            "journey.steps[0].take[0].from.regex",
        ),
        (
            with(good.clone(), "/journey/steps/0/take/0/from", json!({"json": "x"})),
            "journey.steps[0].take[0].from.json",
        ),
        (with(good.clone(), "/journey/steps/0/take", json!([])), "requests[1]"),
        (with(good.clone(), "/requests/0/path", json!("/{take:token}")), "requests[0]"),
        (with(good.clone(), "/requests/0/path", json!("/{row:age}")), "requests[0]"),
        (with(good.clone(), "/journey/again_at", json!([401])), "journey.again_at"),
        (with(good.clone(), "/journey/users", json!(2)), "journey.users"),
        (with(open(&once), "/journey/users", json!(0)), "journey.users"),
        (with(open(&good), "/journey/rows/use", json!("user")), "journey.rows.use"),
        (with(once.clone(), "/journey/rows/use", json!("turn")), "requests[0]"),
        (with(once, "/load/closed/users", json!(41)), "journey.rows.values"),
        (with(good.clone(), "/journey/rows/values", json!([["a"], []])), "journey.rows.values[1]"),
        (with(good.clone(), "/journey/rows/columns", json!([])), "journey.rows"),
        (
            with(
                with(good, "/journey/rows/use", json!("unique")),
                "/duet",
                json!({"targets": [{"host": "127.0.0.1", "port": 2}], "slice_ns": 10_000_000, "guard_ns": 1_000_000}),
            ),
            "journey.rows.use",
        ),
    ];
    for (job, field) in cases {
        let output = run(&job);
        let error = output.error();
        assert_eq!((output.code, error["kind"].as_str()), (Some(2), Some("bad_job")), "{field}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{field}: ")), "{field}: {message}");
    }
}

#[test]
fn a_check_shows_every_step_and_what_it_took() {
    let shop = Shop::open(2);
    let mut job = member(job(shop.server.port), &["/maybe", "/never", "/b", "/c"]);
    job["requests"][1]["expect"] = json!({"status": [200, 304]});
    job["journey"]["steps"][1]["when"] = json!({"step": 0, "status": [304]});
    job["journey"]["steps"][2]["think"] = json!({"fixed_ns": 3_600_000_000_000_u64});
    let check = json!({"format": "redline.check/1", "target": job["target"], "requests": job["requests"],
        "journey": job["journey"], "timeout_ns": 5_000_000_000_u64, "keep_bytes": 100});
    let seen = walked(&check);
    let steps: Vec<_> = seen.iter().map(|line| (line["event"].as_str().unwrap(), line["step"].as_u64())).collect();
    // The third request of the token is answered 401: the login is done again.
    let of = |step| ("checked", Some(step));
    let expected = [of(0), of(1), ("skipped", Some(2)), of(3), of(4), of(0), of(4), ("walked", None)];
    assert_eq!(steps, expected, "{seen:#?}");
    assert_eq!((&seen[0]["taken"], &seen[1]["taken"]), (&json!({"token": "t/0"}), &json!({})));
    assert_eq!((&seen[4]["status"], &seen[4]["outcome"]), (&json!(401), &json!("ok")));
    assert_eq!((&seen[5]["taken"], &seen[7]["complete"]), (&json!({"token": "t/1"}), &json!(true)));
    assert!(seen[3]["body_base64"].as_str().is_some_and(|body| !body.is_empty()));

    let seen = walked(&with(check.clone(), "/requests/1/expect", json!({"status": 201})));
    let steps: Vec<_> = seen.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!((steps, &seen[2]["complete"]), (vec!["checked", "checked", "walked"], &json!(false)));
    assert_eq!(seen[1]["outcome"], "unexpected_status");
    let closed = walked(&with(check, "/target/port", json!(1)));
    assert_eq!((&closed[0]["outcome"], &closed[1]["complete"]), (&json!("connect"), &json!(false)));
}

/// A shop for HTTP/2 with a single session.
fn shop_of_http2() -> Http2Server {
    Http2Server::start(Builder::new(), |received: &Received| {
        let of = |name: &str| {
            received.request.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned())
        };
        match received.request.uri().path() {
            "/login" => Act::Headed("set-cookie", "sid=7; Path=/", r#"{"token": "t/7"}"#),
            _ if of("cookie").eq(["own=1", "sid=7"]) && of("authorization").eq(["Bearer t/7"]) => Act::Answer("hello"),
            _ => Act::Status(401),
        }
    })
}

#[test]
fn journeys_are_the_same_over_http2() {
    let server = shop_of_http2();
    let closed = counted(shopping(with(job(server.port), "/load/closed/users", json!(3)), &["/a", "/b"], "turn"), 30);
    let open = with(open_job(server.port, 500, 1), "/load/open/depth", json!(8));
    let open = counted(member(open, &["/a", "/b"]), 30);
    for backend in BACKENDS {
        for job in [&closed, &open] {
            let mut job = with(with(job.clone(), "/target/http", json!("2")), "/backend", json!(backend));
            for request in 1..3 {
                job["requests"][request]["headers"].as_array_mut().unwrap().push(json!(["Cookie", "own=1"]));
            }
            let result = complete(&job);
            result.are_all("ok");
            adds_up(&result);
            assert_eq!((of(&result, "due"), of(&result, "completed")), (30, 30));
            let check = json!({"format": "redline.check/1", "target": job["target"], "requests": job["requests"],
                "journey": job["journey"], "timeout_ns": 5_000_000_000_u64, "keep_bytes": 100});
            let seen = walked(&check);
            let outcomes: Vec<_> = seen[..3].iter().map(|line| line["outcome"].as_str()).collect();
            assert_eq!((outcomes, &seen[3]["complete"]), (vec![Some("ok"); 3], &json!(true)), "{seen:#?}");
            assert_eq!(seen[0]["taken"], json!({"token": "t/7"}));
        }
    }
}

#[test]
fn a_value_that_cannot_be_sent_ends_its_journey_alone() {
    for http in ["1.1", "2"] {
        let (shop, http2) = (Shop::open(9), shop_of_http2());
        let port = if http == "2" { http2.port } else { shop.server.port };
        let mut job = counted(shopping(with(job(port), "/target/http", json!(http)), &["/a"], "turn"), 12);
        job["journey"]["rows"]["values"] = json!([["good"], ["new\nline"], ["good"]]);
        job["requests"][1]["headers"][0] = json!(["X-Name", "{row:name}"]);
        job["requests"][1]["expect"] = json!({"status": 401});
        job["load"] = json!({"closed": {"users": 1}});
        let result = complete(&job);
        adds_up(&result);
        assert_eq!((list(&result, "abandoned"), of(&result, "completed")), (vec![0, 4], 8), "{:#}", result.event);
        assert_eq!((result.outcome("closed"), result.count("due"), result.count("sent")), (4, 24, 20));
        let failure = &result.event["failures"][0];
        assert_eq!(
            (&failure["reason"], &failure["request"]),
            (&json!("a value that is empty, or has a control character, cannot be sent in a header"), &json!(1))
        );
        // The connection stays.
        assert_eq!(result.count("reconnects"), 0);
    }
}

#[test]
fn a_value_that_no_step_took_ends_the_journey() {
    let shop = Shop::open(9);
    let mut job = counted(shopping(job(shop.server.port), &["/a", "/b"], "turn"), 3);
    job["journey"]["steps"][1]["when"] = json!({"step": 0, "status": [201]});
    job["journey"]["steps"][1]["take"] = json!([{"name": "csrf", "from": {"regex": "c[0-9]"}}]);
    job["requests"][2]["path"] = json!("/{take:csrf}");
    let result = complete(&job);
    adds_up(&result);
    assert_eq!((list(&result, "abandoned"), list(&result, "skipped")), (vec![0, 0, 3], vec![0, 3, 0]));
    assert_eq!(
        result.event["failures"][0]["reason"],
        "there is no value for `csrf`: the step that takes it was not sent"
    );
}

#[test]
fn parts_and_processes_share_users_and_rows() {
    let shop = Shop::open(9);
    let job = shopping(with(job(shop.server.port), "/load/closed/users", json!(6)), &["/a"], "unique");
    let job = with(with(job, "/warmup_ns", json!(0)), "/measure_ns", json!(20_000_000_000_u64));
    let mut engines = vec![parts::start(&parts::part(job.clone(), 0, 1, 3)), parts::start(&parts::part(job, 1, 2, 3))];
    parts::started(&mut engines);
    let results: Vec<_> = parts::finished(engines).iter().map(EngineOutput::result).collect();
    results.iter().for_each(adds_up);
    // 40 rows for three workers.
    assert_eq!(results.iter().map(|result| of(result, "completed")).collect::<Vec<_>>(), [14, 26]);
    let names: HashSet<_> = shop.asked().into_iter().filter(|r| r.path == "/login").map(|r| r.body).collect();
    assert_eq!(names.len(), 40);

    let shop = Shop::open(1000);
    let base = with(
        crate::support::job(shop.server.port),
        "/load/closed",
        json!({"users": 40, "think": {"fixed_ns": 20_000_000}}),
    );
    let engine = Engine::start_with(&member(base, &["/a"]).to_string(), |command| limit_open_files(command, 40));
    let output = engine.finish();
    assert!(output.of_kind("started").next().unwrap()["engine"]["processes"].as_u64() > Some(1));
    let result = output.result();
    result.are_all("ok");
    adds_up(&result);
    let names: Vec<_> = shop.asked().into_iter().filter(|r| r.path == "/login").map(|r| r.body).collect();
    assert_eq!((names.len(), names.iter().collect::<HashSet<_>>().len()), (40, 40));

    let engine = Engine::start_with(
        &with(
            member(with(crate::support::job(shop.server.port), "/load/closed/users", json!(40)), &["/a"]),
            "/requests/0/path",
            json!("/wrong"),
        )
        .to_string(),
        |command| limit_open_files(command, 40),
    );
    let output = engine.finish();
    let last = output.events.last().unwrap();
    assert_eq!((output.code, last["kind"].as_str()), (Some(1), Some("connect")), "{last}");
    assert!(last["message"].as_str().unwrap().contains("could not take `once`: requests[0]: status 500"), "{last}");
}

#[test]
fn open_journeys_of_a_duet_begin_at_the_same_times() {
    for parallel in [false, true] {
        let (one, other) = (Shop::open(1000), Shop::open(1000));
        let mut job = shopping(open_job(one.server.port, 400, 4), &["/a", "/b"], "turn");
        job["journey"]["steps"][2]["think"] = json!({"fixed_ns": 3_000_000});
        job["duet"] = json!({"targets": [{"host": "127.0.0.1", "port": other.server.port}], "slice_ns": 20_000_000,
                             "guard_ns": 1_000_000, "parallel": parallel});
        job["warmup_ns"] = json!(100_000_000);
        job["measure_ns"] = json!(600_000_000);
        let output = run(&job);
        let last = output.events.last().unwrap();
        assert_eq!((output.code, last["event"].as_str()), (Some(0), Some("duet")), "{last:#}");
        let results: Vec<_> =
            last["targets"].as_array().unwrap().iter().map(|event| Outcome { event: event.clone() }).collect();
        results.iter().for_each(adds_up);
        assert!(results.iter().all(|result| of(result, "completed") >= 5), "{last:#}");
        if last["paused_blocks"] == 0 {
            assert_eq!(of(&results[0], "due"), of(&results[1], "due"));
        }
    }
}

/// The lines of a check of a journey.
pub fn walked(check: &Value) -> Vec<Value> {
    let mut engine = Engine::start_heeding(&format!("{check}\n"), |command| {
        command.arg("check");
    });
    let mut seen = Vec::new();
    engine.wait_until(|event| {
        seen.push(event.clone());
        event["event"] == "walked" || event["event"] == "error"
    });
    seen
}

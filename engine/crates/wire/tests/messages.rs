//! What is looked at in messages of JSON is what a full reader finds there.

use proptest::prelude::*;
use redline_wire::{Amount, Counts, EventKind, EventReader, MessageCounts, MessageRules, Place, Pointer};
use serde_json::{Value, json};

fn read(rules: MessageRules, lines: &[&str]) -> MessageCounts {
    let mut reader = EventReader::new(EventKind::Ndjson, Some(rules.keep()));
    for line in lines {
        reader.data(line.as_bytes(), false);
        reader.data(b"\n", true);
    }
    reader.end();
    reader.counts()
}

fn place(text: &str) -> Place {
    Place::new(Pointer::parse(text).unwrap())
}

fn counts_at(pointer: &str, line: &str) -> bool {
    let counts = Counts::Json(vec![place(pointer)]);
    read(MessageRules { counts, ..MessageRules::default() }, &[line]).counted == 1
}

#[test]
fn a_value_counts_unless_it_is_null_or_empty() {
    for something in ["0", "false", "true", "-1.5e3", r#""x""#, r#""\"""#, "[0]", "[ [] ]", r#"{"a":null}"#] {
        assert!(counts_at("/a", &format!(r#"{{"b": [1, {{"a": 2}}], "a" : {something}}}"#)), "{something}");
    }
    for nothing in ["null", r#""""#, "[]", "[ ]", "{ }"] {
        assert!(!counts_at("/a", &format!(r#"{{"a":{nothing}}}"#)), "{nothing}");
    }
    for none in ["[DONE]", "", "{", r#"{"a"#, r#"{"a":"#, r#"{"b":1}"#, r#"{"b":{"a":1}}"#, "7", r#"{"b" 1}"#, "[,]"] {
        assert!(!counts_at("/a", none), "{none}");
    }
    assert!(counts_at("/a~1b/1", r#"{"a/b":[0,1]}"#));
    assert!(counts_at("/é", "{\"\\u00e9\":1}"));
    assert!(!counts_at("/01", "[1, 2]"));
}

#[test]
fn amounts_are_added_or_are_the_most_so_far() {
    let lines = [r#"{"n": 3}"#, r#"{"m": 4}"#, r#"{"n": 5.9}"#, r#"{"n": -1}"#, r#"{"n": "7"}"#];
    let with = |amount| read(MessageRules { amount, ..MessageRules::default() }, &lines).amount;
    assert_eq!(with(Amount::Each(vec![place("/n"), place("/m")])), 12);
    assert_eq!(with(Amount::Total(vec![place("/n")])), 5);
    assert_eq!(with(Amount::Bytes), lines.iter().map(|line| line.len() as u64).sum::<u64>());
}

/// However it is cut into pieces.
#[test]
fn bytes_are_counted_past_what_is_looked_at() {
    let content = "x".repeat(2 * 1024 * 1024);
    let rules = MessageRules { amount: Amount::Bytes, ..MessageRules::default() }.keep();
    for piece in [content.len() + 9, 100_000] {
        for (kind, text, amount) in [
            (EventKind::Ndjson, format!("{content}\n{content}\n1\n"), 2 * content.len() + 1),
            (EventKind::Sse, format!("data: {content}\ndata: 1\n\n: {content}\ndata: 1\n\n"), content.len() + 3),
            (EventKind::Chunks, content.clone(), content.len()),
        ] {
            let mut reader = EventReader::new(kind, Some(rules));
            let pieces = text.as_bytes().chunks(piece);
            let last = pieces.len() - 1;
            pieces.enumerate().for_each(|(at, piece)| reader.data(piece, at == last));
            assert_eq!(reader.counts().amount, amount as u64, "{kind:?} in {piece}");
        }
    }
}

#[test]
fn a_message_that_reports_an_error_is_kept() {
    let errors = vec![Counts::Json(vec![place("/error")]), Counts::Events(vec![b"error".to_vec()])];
    let rules = MessageRules { errors, until: Some(3), ..MessageRules::default() }.keep();
    let first_of = |events: &str| {
        let mut reader = EventReader::new(EventKind::Sse, Some(rules));
        reader.data(events.as_bytes(), true);
        reader.take_values().error
    };
    assert_eq!(first_of("data: {\"error\": null}\n\ndata: {\"a\": {\"error\": 1}}\n\n"), None);
    let error = r#"{"error":{"message":"out of memory"}}"#;
    assert_eq!(first_of(&format!("data: 1\n\ndata: {error}\n\ndata: {{\"error\":2}}\n\n")), Some(error.to_owned()));
    assert_eq!(first_of("event: error\ndata: overloaded\n\n"), Some("overloaded".to_owned()));
    assert_eq!(first_of(&format!("data: 1\n\ndata: 2\n\ndata: 3\n\ndata: {error}\n\n")), None, "it came too late");
}

#[test]
fn nothing_is_counted_past_the_last_message_that_counts() {
    let lines = [r#"{"n": 3}"#, r#"{"m": 4}"#, r#"{"n": 5}"#, r#"{"m": 4}"#, r#"{"n": 9}"#, "[DONE]"];
    let rules = MessageRules {
        counts: Counts::Json(vec![place("/n")]),
        amount: Amount::Each(vec![place("/n")]),
        last_data: vec![b"[DONE]".to_vec()],
        until: Some(2),
        ..MessageRules::default()
    };
    let counts = MessageCounts { counted: 2, aside: 1, amount: 8, is_finished: true };
    assert_eq!(read(rules, &lines), counts);
}

#[test]
fn an_event_without_a_type_is_a_message() {
    let rules = MessageRules { counts: Counts::Events(vec![b"message".to_vec()]), ..MessageRules::default() };
    let mut reader = EventReader::new(EventKind::Sse, Some(rules.keep()));
    reader.data(b"data: 1\n\nevent: message\ndata: 2\n\nevent: ping\ndata: 3\n\n", true);
    assert_eq!((reader.counts().counted, reader.counts().aside), (2, 1));
}

#[test]
fn comments_alone_are_no_messages_with_an_empty_first() {
    let rules = MessageRules { counts: Counts::Json(vec![place("/n")]), ..MessageRules::default() };
    let seen = MessageCounts { aside: 12, ..MessageCounts::default() };
    assert_eq!(
        rules.missing(seen, b""),
        "none of 12 messages had a value at \"/n\": they have no data, as comments have none"
    );
    assert!(rules.missing(seen, b"{}").ends_with("; the first was {}"));
}

#[test]
fn texts_are_the_strings_of_messages_that_count() {
    let rules =
        MessageRules { counts: Counts::Json(vec![place("/n")]), text: Some(place("/a/0")), ..MessageRules::default() };
    let mut reader = EventReader::new(EventKind::Ndjson, Some(rules.keep()));
    let lines = [
        r#"{"n":1,"a":["x\n\u00e9"]}"#,
        r#"{"a":["no"]}"#,
        r#"{"n":1,"a":[7]}"#,
        r#"{"n":1,"a":[""]}"#,
        r#"{"n":1,"a":["é"#,
    ];
    for line in lines {
        reader.data(format!("{line}\n").as_bytes(), false);
    }
    let nothing = |line: &str| Err(line.to_owned());
    let expected = [Ok("x\né".to_owned()), nothing(lines[2]), nothing(lines[3]), nothing(lines[4])];
    assert_eq!(reader.take_values().texts, expected);
    assert!(reader.take_values().texts.is_empty());
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ab\"\\\\{}\\[\\],:é\u{1}]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[ab\"\\\\]{0,2}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn what_stands_at_a_pointer_is_what_a_reader_finds(
        value in value(),
        steps in prop::collection::vec("[ab\"\\\\]{0,2}|[0-3]", 0..4),
        pretty in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let pointer: String = steps.iter().flat_map(|step| ["/", step]).collect();
        let found = value.pointer(&pointer);
        let is_something = found.is_some_and(|found| match found {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => true,
        });
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap().replace('\n', " ") } else { value.to_string() };
        prop_assert_eq!(counts_at(&pointer, &text), is_something, "{} at {}", text, pointer);
        // No part of it breaks the reader.
        let part = String::from_utf8_lossy(&text.as_bytes()[..cut.index(text.len() + 1)]).into_owned();
        counts_at(&pointer, &part);
    }
}

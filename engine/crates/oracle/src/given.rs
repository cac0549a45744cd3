//! Options by name, and how their values are parsed.

use std::net::IpAddr;

/// Options without a value.
const FLAGS: [&str; 7] =
    ["--bytewise", "--close-silently", "--ndjson", "--report", "--server-time-json", "--sessions", "--tokens"];

/// The options of the command line that were not yet taken.
pub struct Given(Vec<(String, String)>);

impl Given {
    /// `--name value` and `--name=value`; `None` when help was requested.
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some(argument) = arguments.next() {
            if argument == "-h" || argument == "--help" {
                return Ok(None);
            }
            let (name, value) = if FLAGS.contains(&argument.as_str()) {
                (argument, String::new())
            } else if let Some((name, value)) = argument.split_once('=') {
                if FLAGS.contains(&name) {
                    return Err(format!("{name} has no value"));
                }
                (name.to_owned(), value.to_owned())
            } else {
                let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
                (argument, value)
            };
            if pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(format!("{name} is given twice"));
            }
            pairs.push((name, value));
        }
        Ok(Some(Self(pairs)))
    }

    /// An option's value, if it was given.
    pub fn take<T>(&mut self, name: &str, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(index) = self.0.iter().position(|(given, _)| given == name) else {
            return Ok(None);
        };
        let (_, value) = self.0.swap_remove(index);
        read(&value).map(Some).map_err(|wrong| format!("{name} {value}: {wrong}"))
    }

    /// An option's value, which `whose` requires; `form` is the option as the usage shows it.
    pub fn need<T>(&mut self, whose: &str, form: &str, read: fn(&str) -> Result<T, String>) -> Result<T, String> {
        let name = form.split(' ').next().unwrap_or(form);
        self.take(name, read)?.ok_or_else(|| format!("{whose} needs {form}"))
    }

    /// Whether an option without a value was given.
    pub fn flag(&mut self, name: &str) -> bool {
        let place = self.0.iter().position(|(given, _)| given == name);
        place.map(|index| self.0.swap_remove(index)).is_some()
    }

    /// Whether an option was given and not yet taken.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    /// An error when an option is left over.
    pub fn none_left(&self, mode: &str) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(format!("{mode} has no option {name}")))
    }
}

/// Any number in the range of its type.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "not a number in range".into())
}

/// A count from 1 to 4096.
pub fn count(text: &str) -> Result<usize, String> {
    let count = number(text)?;
    if (1..=4096).contains(&count) { Ok(count) } else { Err("not from 1 to 4096".into()) }
}

/// An integer.
pub fn integer(text: &str) -> Result<usize, String> {
    number(text)
}

/// A number from 1.
pub fn ordinal(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err("not from 1".into()),
        ordinal => Ok(ordinal),
    }
}

/// A probability.
pub fn probability(text: &str) -> Result<f64, String> {
    let share = number(text)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("not from 0 to 1".into()) }
}

/// A length in bytes, at most 1 GiB.
pub fn length(text: &str) -> Result<usize, String> {
    let length = number(text)?;
    if length <= 1 << 30 { Ok(length) } else { Err("more than 1 GiB".into()) }
}

/// An IP address.
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "not an IP address".into())
}

/// The nanoseconds of a unit of time.
pub fn unit_ns(text: &str) -> Result<u64, String> {
    match text {
        "ns" => Ok(1),
        "us" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(1_000_000_000),
        _ => Err("not s, ms, us or ns".into()),
    }
}

/// `250us`, `5ms` or `1.5s` in nanoseconds, at most a day.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || "not a duration such as 250us, 5ms or 1.5s, of at most a day".to_owned();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let scale = unit_ns(&text[unit..]).map_err(|_| wrong())? as f64;
    let nanoseconds = text[..unit].parse::<f64>().map_err(|_| wrong())? * scale;
    if (0.0..=86_400e9).contains(&nanoseconds) { Ok(nanoseconds.round() as u64) } else { Err(wrong()) }
}

/// A duration that is not 0.
pub fn time_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        0 => Err("not more than 0".into()),
        duration_ns => Ok(duration_ns),
    }
}

/// A duration that may be negative.
pub fn signed_ns(text: &str) -> Result<i64, String> {
    match text.strip_prefix('-') {
        Some(text) => duration_ns(text).map(|duration_ns| -(duration_ns as i64)),
        None => duration_ns(text).map(|duration_ns| duration_ns as i64),
    }
}

//! The date in a cookie's `Expires` (RFC 6265, section 5.1.1): not the date of HTTP, but what servers write.

/// Seconds since 1970 of a date; negative before. `None` when it is no date.
pub fn parse(text: &str) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_delimiter = |c: char| !c.is_ascii_alphanumeric() && c != ':' && c as u32 <= 0x7e;
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of_day(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_number(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2, 4)
        {
            year = Some(match found {
                0..=69 => found + 2000,
                70..=99 => found + 1900,
                _ => found,
            });
        }
    }
    let ((hour, minute, second), day, month, year) = (time?, day?, month?, year?);
    let is_valid = (1..=31).contains(&day) && year >= 1601 && hour <= 23 && minute <= 59 && second <= 59;
    is_valid.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// The number at the beginning of a token, if it has so many digits and no more follow.
fn number(token: &str, least: usize, most: usize) -> Option<i64> {
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    (least..=most).contains(&digits).then(|| token[..digits].parse().ok())?
}

fn time_of_day(token: &str) -> Option<(i64, i64, i64)> {
    let mut parts = token.splitn(3, ':');
    let mut part = || number(parts.next()?, 1, 2);
    Some((part()?, part()?, part()?))
}

fn month_number(token: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let begin = token.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().position(|month| *month == begin).map(|index| index as i64 + 1)
}

/// Days from 1970-01-01 in the Gregorian calendar, which begins its years in March so that leap days are last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn dates_of_cookies_are_read() {
        for text in [
            "Wed, 21 Oct 2015 07:28:00 GMT",
            "Wednesday, 21-Oct-15 07:28:00 GMT",
            "Wed Oct 21 07:28:00 2015",
            "21 october 2015 7:28:0",
            "2015 oct 21 07:28:00", // the day is the first number of one or two digits
        ] {
            assert_eq!(parse(text), Some(1_445_412_480), "{text}");
        }
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(parse("Thu, 01 Mar 1900 00:00:00 GMT"), Some(-2_203_891_200));
        for text in
            ["", "tomorrow", "21 Oct 2015", "32 Oct 2015 07:28:00", "21 Oct 1600 07:28:00", "21 Oct 2015 24:00:00"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

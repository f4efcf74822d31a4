use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: &str =
    "January February March April May June July August September October November December";
const WEEKDAYS: &str = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday";

/// The word of `names` at index `at`.
fn name(names: &'static str, at: u8) -> &'static str {
    names.split(' ').nth(at.into()).unwrap_or_default()
}

/// A moment in UTC, in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: i64,
    /// From 1.
    month: u8,
    /// From 1.
    day: u8,
    /// From 1.
    day_of_year: u16,
    /// From Sunday, 0.
    weekday: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_lengths(year: i64) -> [u16; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

impl Date {
    /// Times before 1970 are treated as its beginning.
    fn new(time: SystemTime) -> Self {
        let seconds = time
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        // The calendar repeats every 400 years, of 146097 days.
        let mut year = 1970 + (days / 146_097 * 400) as i64;
        let mut left = days % 146_097;
        loop {
            let length = if is_leap(year) { 366 } else { 365 };
            if left < length {
                break;
            }
            left -= length;
            year += 1;
        }
        let day_of_year = left as u16;
        let (mut month, mut day) = (1, day_of_year);
        for length in month_lengths(year) {
            if day < length {
                break;
            }
            day -= length;
            month += 1;
        }
        Self {
            year,
            month,
            day: day as u8 + 1,
            day_of_year: day_of_year + 1,
            // The first of January 1970 was a Thursday.
            weekday: ((days + 4) % 7) as u8,
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
        }
    }

    fn month_name(&self) -> &'static str {
        name(MONTHS, self.month - 1)
    }

    fn weekday_name(&self) -> &'static str {
        name(WEEKDAYS, self.weekday)
    }

    fn hour12(&self) -> u8 {
        match self.hour % 12 {
            0 => 12,
            hour => hour,
        }
    }
}

fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

/// `time` in UTC as C's `strftime` writes it in the C locale; unknown directives are copied
/// unchanged. `%-d` and similar omit leading zeros.
pub(super) fn strftime(time: SystemTime, format: &str) -> String {
    let date = Date::new(time);
    let mut out = String::with_capacity(format.len() + 16);
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let (padded, directive) = match after.strip_prefix('-') {
            Some(directive) => (false, directive),
            None => (true, after),
        };
        let mut characters = directive.chars();
        let Some(letter) = characters.next() else {
            out.push('%');
            rest = after;
            continue;
        };
        let mut number = |value: i64, width: usize| {
            let width = if padded { width } else { 0 };
            // Writing to a string cannot fail.
            let _ = write!(out, "{value:0width$}");
        };
        match letter {
            'Y' => number(date.year, 4),
            'y' => number(date.year % 100, 2),
            'm' => number(date.month.into(), 2),
            'd' => number(date.day.into(), 2),
            'j' => number(date.day_of_year.into(), 3),
            'H' => number(date.hour.into(), 2),
            'I' => number(date.hour12().into(), 2),
            'M' => number(date.minute.into(), 2),
            'S' => number(date.second.into(), 2),
            'e' => out.push_str(&format!("{:2}", date.day)),
            'B' => out.push_str(date.month_name()),
            'b' | 'h' => out.push_str(short(date.month_name())),
            'A' => out.push_str(date.weekday_name()),
            'a' => out.push_str(short(date.weekday_name())),
            'p' => out.push_str(if date.hour < 12 { "AM" } else { "PM" }),
            'F' => out.push_str(&strftime(time, "%Y-%m-%d")),
            'T' => out.push_str(&strftime(time, "%H:%M:%S")),
            'Z' => out.push_str("UTC"),
            'z' => out.push_str("+0000"),
            '%' => out.push('%'),
            _ => {
                out.push('%');
                rest = after;
                continue;
            }
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, format: &str) -> String {
        strftime(UNIX_EPOCH + Duration::from_secs(seconds), format)
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(
            at(0, "%Y-%m-%d %H:%M:%S %A"),
            "1970-01-01 00:00:00 Thursday"
        );
        assert_eq!(at(951_782_400, "%d %b %Y (%j)"), "29 Feb 2000 (060)");
        assert_eq!(
            at(1_735_689_599, "%a %e %B %y %I:%M %p"),
            "Tue 31 December 24 11:59 PM"
        );
        assert_eq!(at(4_107_542_400, "%F %-d/%-m"), "2100-03-01 1/3");
        assert_eq!(at(16_725_225_600, "%F"), "2500-01-01");
    }

    #[test]
    fn unknown_directives_stay_as_they_are() {
        assert_eq!(at(0, "100%% %Q %-Q %"), "100% %Q %-Q %");
    }
}

//! Formatting numbers for people.

use std::time::Duration;

/// Bytes in binary units: `6.2 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// A count with a decimal suffix: `134.52 M`.
pub fn count(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.2} K", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} M", value / 1e6),
        _ => format!("{:.2} B", value / 1e9),
    }
}

/// A duration with about three digits: `12.3 ms`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// `count` per second; 0 if the duration is zero.
pub fn rate(count: usize, duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

/// `count` with a regular noun, in the plural unless `count` is 1.
pub fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_suitable_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(bytes(6_500_000), "6.2 MiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(count(999), "999");
        assert_eq!(count(134_515_008), "134.52 M");
        assert_eq!(duration(Duration::from_micros(12_340)), "12.3 ms");
        assert_eq!(duration(Duration::from_millis(2500)), "2.50 s");
        assert_eq!(rate(10, Duration::ZERO), 0.0);
        assert_eq!(plural(1, "token"), "1 token");
        assert_eq!(plural(0, "token"), "0 tokens");
    }
}

const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
];

/// Parses a number of bytes with an optional unit: K, M and G are 10^3, 10^6 and 10^9; KiB, MiB and
/// GiB are 2^10, 2^20 and 2^30.
pub fn bytes(text: &str) -> Result<u64, String> {
    let mut units = UNITS.iter();
    let unit = units.find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err("expected a number of bytes such as 500M or 2G".to_owned());
    }
    let size = digits.parse::<u64>().ok();
    match size.and_then(|size| size.checked_mul(factor)) {
        None => Err("it must be less than 2^64".to_owned()),
        Some(0) => Err("it must be at least 1".to_owned()),
        Some(size) => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_in_powers_of_ten_or_two() {
        assert_eq!(bytes("7"), Ok(7));
        assert_eq!(bytes("3k"), Ok(3_000));
        assert_eq!(bytes("500M"), Ok(500_000_000));
        assert_eq!(bytes("2G"), Ok(2_000_000_000));
        assert_eq!(bytes("6GiB"), Ok(6 << 30));
        assert_eq!(bytes("1KiB"), Ok(1024));
        assert_eq!(bytes("0G"), Err("it must be at least 1".to_owned()));
        let most = "99999999999999999999";
        assert_eq!(bytes(most), Err("it must be less than 2^64".to_owned()));
        for text in ["", "G", "-1", "1.5G", "2GB", "é"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}

//! Numbers on the command line.

use std::ops::RangeInclusive;

/// A parser of whole numbers in `range`, whose error messages state the range. Its option needs
/// `allow_negative_numbers`, so that a negative number is not parsed as an option.
pub fn whole<T: TryFrom<i128>>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    i128: TryFrom<T>,
{
    let bound = |bound: T, unknown| i128::try_from(bound).unwrap_or(unknown);
    let (least, most) = range.into_inner();
    let (least, most) = (bound(least, i128::MIN), bound(most, i128::MAX));
    move |text| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("it must be a whole number".to_owned());
        }
        // More digits than an i128 holds are beyond every range.
        let beyond = if text.starts_with('-') {
            i128::MIN
        } else {
            i128::MAX
        };
        let number = text.parse().unwrap_or(beyond);
        if number < least {
            return Err(format!("it must be at least {least}"));
        }
        let number = T::try_from(number).ok().filter(|_| number <= most);
        number.ok_or_else(|| format!("it must be at most {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_number_outside_the_range_names_the_nearer_end() {
        let small = whole(1u8..=9);
        assert_eq!(small("9"), Ok(9));
        assert_eq!(small("+1"), Ok(1));
        assert_eq!(small("0"), Err("it must be at least 1".to_owned()));
        assert_eq!(small("-3"), Err("it must be at least 1".to_owned()));
        assert_eq!(small("10"), Err("it must be at most 9".to_owned()));
        let long = "9".repeat(60);
        assert_eq!(small(&long), Err("it must be at most 9".to_owned()));
        let long = format!("-{long}");
        assert_eq!(small(&long), Err("it must be at least 1".to_owned()));
        for text in ["", "-", "1.5", "one", "1 "] {
            assert_eq!(small(text), Err("it must be a whole number".to_owned()));
        }
        assert_eq!(whole(0..=u64::MAX)("18446744073709551615"), Ok(u64::MAX));
    }
}

//! Token ids on the command line.

use std::str::FromStr;

/// A list of token ids.
#[derive(Debug, Clone)]
pub struct TokenIds(pub Vec<u32>);

impl FromStr for TokenIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty());
        let ids = words.map(|word| {
            let id = word.parse::<u32>();
            id.map_err(|_| format!("`{word}` is not a token id (a whole number of at least 0)"))
        });
        let ids = ids.collect::<Result<Vec<u32>, String>>()?;
        if ids.is_empty() {
            return Err("there are no ids".to_owned());
        }
        Ok(Self(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_separated_by_commas_or_spaces() {
        let ids: TokenIds = "1, 2 3,4\n".parse().unwrap();
        assert_eq!(ids.0, [1, 2, 3, 4]);
        assert!("".parse::<TokenIds>().is_err());
        assert!("1,-2".parse::<TokenIds>().is_err());
        assert!("4294967296".parse::<TokenIds>().is_err());
    }
}

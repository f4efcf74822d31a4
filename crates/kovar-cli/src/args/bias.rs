//! Logit biases on the command line.

use std::str::FromStr;

/// A value of `--logit-bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bias {
    /// The tokens.
    pub of: BiasOf,
    /// What is added to their logits.
    pub bias: f32,
}

/// The tokens of a [`Bias`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BiasOf {
    /// One, by its id.
    Token(u32),
    /// Those of a text.
    Text(String),
}

impl FromStr for Bias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (of, bias) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (text, bias) = quoted
                    .rsplit_once('"')
                    .ok_or("the closing quote is missing")?;
                (BiasOf::Text(super::unescaped(text)?), bias)
            }
            None => {
                let sign = text
                    .find(['+', '-'])
                    .ok_or("expected +X or -X after the id")?;
                let (id, bias) = text.split_at(sign);
                let id = id.parse();
                let id =
                    id.map_err(|_| "expected a token id, or a text in quotes, before the sign")?;
                (BiasOf::Token(id), bias)
            }
        };
        let value = bias
            .strip_prefix(['+', '-'])
            .and_then(|x| x.parse::<f32>().ok());
        // The sign was already removed, so a second one is invalid.
        let value = value.filter(|x| !x.is_nan() && x.is_sign_positive());
        // Only `inf` is infinite: a number beyond f32 is an error.
        let says_infinite = bias.to_ascii_lowercase().contains("inf");
        let value = value.filter(|x| x.is_finite() || says_infinite);
        let value = value.ok_or("expected + or - and a number of f32, or inf, after the token")?;
        let bias = if bias.starts_with('-') { -value } else { value };
        Ok(Self { of, bias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_is_of_an_id_or_a_text() {
        let token = |id, bias| {
            let of = BiasOf::Token(id);
            Ok(Bias { of, bias })
        };
        assert_eq!("15+1.5".parse(), token(15, 1.5));
        assert_eq!("15-1e-3".parse(), token(15, -1e-3));
        assert_eq!("15-inf".parse(), token(15, f32::NEG_INFINITY));
        let of = BiasOf::Text("a\"-\n".to_owned());
        assert_eq!(
            r#""a"-\n"+inf"#.parse(),
            Ok(Bias {
                of,
                bias: f32::INFINITY
            })
        );
        for text in [
            "", "15", "5+1e39", "5-1e39", "x+1", "15+", "15+nan", "15--1", "15+-1", "-1+1",
            "\"a+1", "\"a\"1",
        ] {
            assert!(text.parse::<Bias>().is_err(), "{text}");
        }
    }
}

//! Rules that choose number types by tensor names.

use std::str::FromStr;

use kovar_core::DType;
use kovar_core::ops::dtypes::FLOATS;

/// A type for the tensors whose name matches a pattern, written `PATTERN=TYPE`.
///
/// In a pattern, `*` matches any text and `?` any one character. The whole name must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRule {
    pattern: String,
    dtype: DType,
}

/// Why a text is not a [`TensorRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// There is no pattern or no `=`.
    #[error("{rule:?} is not of the form PATTERN=TYPE")]
    Form {
        /// The text.
        rule: String,
    },
    /// Weights cannot have the type.
    #[error("{name:?} is not a type for weights")]
    UnknownType {
        /// The text after the `=`.
        name: String,
    },
}

impl TensorRule {
    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether the pattern matches the whole of `name`.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let pattern: Vec<char> = self.pattern.chars().collect();
        glob(&pattern, &name)
    }
}

impl FromStr for TensorRule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        let (pattern, name) = rule
            .rsplit_once('=')
            .filter(|(pattern, _)| !pattern.is_empty())
            .ok_or_else(|| RuleError::Form { rule: rule.into() })?;
        let dtype = name
            .parse::<DType>()
            .ok()
            .filter(|dtype| FLOATS.contains(dtype) || dtype.is_quantized())
            .ok_or_else(|| RuleError::UnknownType { name: name.into() })?;
        Ok(Self {
            pattern: pattern.into(),
            dtype,
        })
    }
}

/// Matches without recursion: on a mismatch the last `*` matches one more character.
fn glob(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&c) if c == '?' || Some(&c) == name.get(from) => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    from = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, matches) in [
            ("*", "", true),
            ("output.weight", "output.weight", true),
            ("output", "output.weight", false),
            ("*attn_v*", "blk.3.attn_v.weight", true),
            ("blk.?.ffn_*.weight", "blk.3.ffn_down.weight", true),
            ("blk.?.ffn_*.weight", "blk.13.ffn_down.weight", false),
            ("*a*b*", "xxaxxaxxb", true),
            ("*a*b", "xxaxxbx", false),
            ("a**", "a", true),
            ("?", "é", true),
            ("?", "", false),
        ] {
            let rule: TensorRule = format!("{pattern}=F16").parse().unwrap();
            assert_eq!(rule.matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn rules_read_as_pattern_and_type() {
        let rule: TensorRule = "blk.*=q6_k".parse().unwrap();
        assert_eq!((rule.pattern(), rule.dtype()), ("blk.*", DType::Q6K));
        for (text, error) in [
            ("blk", "\"blk\" is not of the form PATTERN=TYPE"),
            ("=F16", "\"=F16\" is not of the form PATTERN=TYPE"),
            ("a=", "\"\" is not a type for weights"),
            ("a=F64", "\"F64\" is not a type for weights"),
            ("a=F8_E4M3", "\"F8_E4M3\" is not a type for weights"),
            ("a=I32", "\"I32\" is not a type for weights"),
            ("a=Q4_K_M", "\"Q4_K_M\" is not a type for weights"),
        ] {
            assert_eq!(text.parse::<TensorRule>().unwrap_err().to_string(), error);
        }
    }
}

//! Patterns of names.

use std::fmt;

/// A pattern that matches whole names: `*` matches any characters, `?` one, all others themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern; every text is valid.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Whether the pattern matches `name`.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // The position after the last `*`, and where in the name matching went on from there.
        let mut retry: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    p += 1;
                    retry = Some((p, n));
                    continue;
                }
                Some(&byte) if byte == name[n] => {}
                // `?` takes all bytes of a character.
                Some(b'?') => {
                    while name.get(n + 1).is_some_and(|&byte| byte & 0xc0 == 0x80) {
                        n += 1;
                    }
                }
                _ => {
                    let Some((after, from)) = retry else {
                        return false;
                    };
                    p = after;
                    n = from + 1;
                    retry = Some((after, n));
                    continue;
                }
            }
            p += 1;
            n += 1;
        }
        pattern.iter().skip(p).all(|&byte| byte == b'*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_pattern_matches_whole_names() {
        let table = [
            ("blk.*.ffn_*", "blk.12.ffn_up.weight", true),
            ("blk.*.ffn_*", "blk.12.attn_q.weight", false),
            ("blk.?.ffn_up*", "blk.3.ffn_up.weight", true),
            ("blk.?.ffn_up*", "blk.13.ffn_up.weight", false),
            ("token_embd", "token_embd.weight", false),
            ("*", "", true),
            ("", "", true),
            ("?", "", false),
            ("a*b*c", "abbcbc", true),
            ("a*b*c", "abbcb", false),
            ("?*", "é", true),
            ("??", "é", false),
            ("*.?", "x.é", true),
        ];
        for (pattern, name, matches) in table {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                matches,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = Pattern::new(&"*a".repeat(64));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(10_000))));
    }
}

//! Escapes in command-line texts.

/// `text` with its escapes replaced.
///
/// # Errors
/// An escape other than newline, tab and backslash.
pub fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('\\') => '\\',
            other => {
                let escape = other.map_or(String::new(), String::from);
                return Err(format!(
                    r"`\{escape}` is not an escape; \n is a newline, \t a tab, \\ a backslash"
                ));
            }
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(unescaped(r"a\tb\\n").unwrap(), "a\tb\\n");
        assert_eq!(unescaped("</s>").unwrap(), "</s>");
        assert!(unescaped(r"\d").unwrap_err().starts_with(r"`\d`"));
        assert!(unescaped("a\\").unwrap_err().starts_with(r"`\`"));
    }
}

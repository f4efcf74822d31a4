use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};

/// A way of splitting text into words before byte pairs are merged.
#[derive(Debug)]
pub(crate) struct Family {
    /// The values of `tokenizer.ggml.pre` that select it.
    pub names: &'static [&'static str],
    /// Applied one after another, each to every piece of the previous one.
    cuts: &'static [Cut],
    /// A word that is itself a token is encoded as that token, even if the merges would not produce
    /// it.
    pub ignore_merges: bool,
    /// The default of `tokenizer.ggml.add_bos_token`.
    pub add_bos: bool,
}

#[derive(Debug)]
struct Cut {
    /// Matches words; the text between two matches is a piece as well.
    words: &'static str,
    /// Also split runs of white space like `\s+(?!\S)|\s+`: the last character of a run belongs to
    /// the following word, unless it is the only one.
    spaces: bool,
}

const GPT2_CUT: Cut = Cut {
    words: r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+",
    spaces: true,
};

/// Like GPT-2's, but a word may begin with any character except a line end, contractions may be
/// upper case, and line ends are separate from other space. The argument is the pattern of digits.
macro_rules! tiktoken_cut {
    ($digits:literal) => {
        Cut {
            words: concat!(
                r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]",
                r"|[^\r\n\p{L}\p{N}]?\p{L}+|",
                $digits,
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
            ),
            spaces: true,
        }
    };
}

const fn words(words: &'static str) -> Cut {
    Cut {
        words,
        spaces: false,
    }
}

/// The built-in families. Names and cuts are those of llama.cpp, so that its files are tokenized in
/// the same way.
static FAMILIES: &[Family] = &[
    Family {
        names: &["default"],
        cuts: &[
            words(r"[\p{P}$+<=>^~|]+"),
            GPT2_CUT,
            words(r"\p{N}+"),
            words("[0-9][0-9][0-9]"),
        ],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &["gpt-2"],
        cuts: &[GPT2_CUT],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &["smollm"],
        cuts: &[words(r"\p{N}"), GPT2_CUT],
        ignore_merges: false,
        add_bos: false,
    },
    Family {
        names: &["llama-bpe", "llama3", "llama-v3"],
        cuts: &[tiktoken_cut!(r"\p{N}{1,3}")],
        ignore_merges: true,
        add_bos: true,
    },
    Family {
        names: &["qwen2", "deepseek-r1-qwen"],
        cuts: &[tiktoken_cut!(r"\p{N}")],
        ignore_merges: false,
        add_bos: false,
    },
];

impl Family {
    /// The family called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.names.contains(&name))
    }

    /// All names that [`Self::named`] knows.
    pub fn known_names() -> Vec<&'static str> {
        FAMILIES
            .iter()
            .flat_map(|family| family.names)
            .copied()
            .collect()
    }
}

/// A [`Family`] with compiled expressions.
#[derive(Debug)]
pub(crate) struct PreTokenizer {
    /// Pattern 0 of each finds words; pattern 1, if any, finds runs of white space.
    cuts: Vec<Regex>,
}

const SPACES_PATTERN: usize = 1;

impl PreTokenizer {
    pub fn new(family: &Family) -> Result<Self, Box<BuildError>> {
        let mut cuts = Vec::with_capacity(family.cuts.len());
        for cut in family.cuts {
            let regex = if cut.spaces {
                Regex::new_many(&[cut.words, r"\s+"])
            } else {
                Regex::new(cut.words)
            };
            cuts.push(regex.map_err(Box::new)?);
        }
        Ok(Self { cuts })
    }

    /// Calls `emit` with each word of `text`, in order; together they are the whole text.
    ///
    /// Linear in the length of the text.
    pub fn split<'t, E>(
        &self,
        text: &'t str,
        emit: &mut dyn FnMut(&'t str) -> Result<(), E>,
    ) -> Result<(), E> {
        cut(&self.cuts, text, emit)
    }
}

fn cut<'t, E>(
    cuts: &[Regex],
    text: &'t str,
    emit: &mut dyn FnMut(&'t str) -> Result<(), E>,
) -> Result<(), E> {
    let Some((regex, rest)) = cuts.split_first() else {
        return if text.is_empty() { Ok(()) } else { emit(text) };
    };
    let mut at = 0;
    while let Some(found) = regex.search(&Input::new(text).range(at..)) {
        let mut end = found.end();
        if found.pattern().as_usize() == SPACES_PATTERN && end < text.len() {
            let run = piece(text, found.start(), end);
            let last = run
                .char_indices()
                .next_back()
                .map_or(0, |(offset, _)| offset);
            if last > 0 {
                end = found.start() + last;
            }
        }
        if end <= at {
            break;
        }
        cut(rest, piece(text, at, found.start()), emit)?;
        cut(rest, piece(text, found.start(), end), emit)?;
        at = end;
    }
    cut(rest, piece(text, at, text.len()), emit)
}

/// `text[start..end]`; the regex engine reports character boundaries only.
fn piece(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static COMPILED: LazyLock<Vec<PreTokenizer>> = LazyLock::new(|| {
        FAMILIES
            .iter()
            .map(|family| PreTokenizer::new(family).unwrap())
            .collect()
    });

    fn split(name: &str, text: &str) -> Vec<String> {
        let index = FAMILIES
            .iter()
            .position(|family| family.names.contains(&name));
        let pre = &COMPILED[index.unwrap()];
        let mut words = Vec::new();
        pre.split::<()>(text, &mut |word| {
            words.push(word.to_owned());
            Ok(())
        })
        .unwrap();
        words
    }

    #[test]
    fn gpt2_keeps_one_space_with_the_next_word() {
        assert_eq!(
            split("gpt-2", "a   b\n\nc "),
            ["a", "  ", " b", "\n", "\n", "c", " "]
        );
        assert_eq!(split("gpt-2", "I'll  '12"), ["I", "'ll", " ", " '", "12"]);
    }

    #[test]
    fn smollm_takes_digits_one_by_one() {
        assert_eq!(split("smollm", "in 1984"), ["in", " ", "1", "9", "8", "4"]);
    }

    #[test]
    fn llama3_groups_digits_by_three_and_keeps_line_ends_together() {
        assert_eq!(split("llama-bpe", "x12345"), ["x", "123", "45"]);
        assert_eq!(
            split("llama-bpe", "a \n\n  b(c"),
            ["a", " \n\n", " ", " b", "(c"]
        );
        assert_eq!(split("llama-bpe", "I'LL!\n\n"), ["I", "'LL", "!\n\n"]);
    }

    #[test]
    fn qwen2_takes_digits_one_by_one() {
        assert_eq!(split("qwen2", "x 12"), ["x", " ", "1", "2"]);
    }

    #[test]
    fn default_cuts_punctuation_first() {
        assert_eq!(
            split("default", "a, 12345!"),
            ["a", ",", " ", "123", "45", "!"]
        );
    }

    proptest! {
        #[test]
        fn words_join_to_the_text(text in "(\\PC|[ \\t\\r\\n'0-9a-z])*") {
            for family in FAMILIES {
                prop_assert_eq!(split(family.names[0], &text).concat(), text.clone());
            }
        }
    }
}
